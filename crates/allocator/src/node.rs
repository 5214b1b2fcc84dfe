//! Nodes, and whether a node selector matches one.
//!
//! Only the name and the labels of a node matter here. A selector that no API server accepts (an unknown operator, a
//! field requirement with several values) matches nothing.

use tollgate_api::view::{NodeRequirement, NodeSelector, NodeTerm, ObjectMeta, View};
use tollgate_document::doc::Value;

/// The name and the labels of a Node.
#[derive(Clone, Copy, Debug)]
pub struct Node<'d> {
    pub name: &'d str,
    /// The map in `metadata.labels`.
    pub labels: Value<'d>,
}

impl<'d> Node<'d> {
    /// Reads the name and labels of a Node object.
    pub fn from_object(object: Value<'d>) -> Node<'d> {
        let metadata = ObjectMeta::of(object.get("metadata"));
        Node { name: metadata.name(), labels: metadata.labels() }
    }

    /// True if one of the selector's terms matches the node. A term without requirements matches no node.
    // upstream v1.37 nodeaffinity.NodeSelector.Match
    pub fn matches(self, selector: NodeSelector<'_>) -> bool {
        selector.terms().iter().any(|term| self.matches_term(term))
    }

    fn matches_term(self, term: NodeTerm<'_>) -> bool {
        let (labels, fields) = (term.match_expressions(), term.match_fields());
        let is_empty = labels.is_empty() && fields.is_empty();
        !is_empty && self.satisfies(labels.iter(), fields.iter())
    }

    /// True if the node meets all requirements on its labels and fields.
    pub fn satisfies<'r>(
        self,
        labels: impl IntoIterator<Item = NodeRequirement<'r>>,
        fields: impl IntoIterator<Item = NodeRequirement<'r>>,
    ) -> bool {
        labels.into_iter().all(|requirement| self.meets_label_requirement(requirement))
            && fields.into_iter().all(|requirement| self.meets_field_requirement(requirement))
    }

    fn meets_label_requirement(self, requirement: NodeRequirement<'_>) -> bool {
        let label = self.labels.get(requirement.key());
        let value = label.exists().then(|| label.str());
        let values = requirement.values();
        match requirement.operator() {
            "In" => value.is_some_and(|value| values.contains(value)),
            "NotIn" => value.is_none_or(|value| !values.contains(value)),
            "Exists" => value.is_some(),
            "DoesNotExist" => value.is_none(),
            operator @ ("Gt" | "Lt") => {
                let bound = values.iter().next().and_then(|bound| bound.parse::<i64>().ok());
                match (value.and_then(|value| value.parse::<i64>().ok()), bound) {
                    (Some(value), Some(bound)) if operator == "Gt" => value > bound,
                    (Some(value), Some(bound)) => value < bound,
                    _ => false,
                }
            }
            _ => false,
        }
    }

    /// Checks a requirement on a field. `metadata.name` is the only supported field; any other counts as
    /// empty.
    fn meets_field_requirement(self, requirement: NodeRequirement<'_>) -> bool {
        let field = if requirement.key() == "metadata.name" { self.name } else { "" };
        let mut values = requirement.values().iter();
        let (Some(value), None) = (values.next(), values.next()) else { return false };
        match requirement.operator() {
            "In" => field == value,
            "NotIn" => field != value,
            _ => false,
        }
    }
}

/// The nodes that can use a device, or all devices of a slice.
#[derive(Clone, Copy, Debug)]
pub enum NodeSelection<'d> {
    /// The node with this name.
    Name(&'d str),
    /// All nodes.
    All,
    /// The nodes that the selector matches.
    Selector(NodeSelector<'d>),
    /// A kind of node selection that Tollgate does not know.
    Unknown,
}

impl<'d> NodeSelection<'d> {
    pub(crate) fn new(
        name: Option<&'d str>,
        all: Option<bool>,
        selector: Option<NodeSelector<'d>>,
    ) -> NodeSelection<'d> {
        match (name, all, selector) {
            (Some(name), _, _) if !name.is_empty() => NodeSelection::Name(name),
            (_, Some(true), _) => NodeSelection::All,
            (_, _, Some(selector)) => NodeSelection::Selector(selector),
            _ => NodeSelection::Unknown,
        }
    }

    /// True if the node can use the device.
    pub fn includes(self, node: Node<'_>) -> bool {
        match self {
            NodeSelection::Name(name) => name == node.name,
            NodeSelection::All => true,
            NodeSelection::Selector(selector) => node.matches(selector),
            NodeSelection::Unknown => false,
        }
    }
}
