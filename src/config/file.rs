//! Reads a configuration file: `.tollgate.yaml`.
//!
//! The file belongs to the repository whose objects are checked, so it is not trusted: it can raise every level, but
//! lower only those of lints. This module opens no files; callers read the paths that the file names.
//!
//! Invariant: every error has a position, and a file with an error gives no configuration.

use super::fields::CONFIG_SCHEMA;
use super::levels::{LevelSetting, LevelTarget, Levels};
use crate::report::DocumentResult;
use tollgate_document::doc::{Value, ValueKind};
use tollgate_document::field::Path;
use tollgate_document::source::{Document, InputError, LineIndex, documents};
use tollgate_engine::policy::{document_errors, glob_matches};
use tollgate_engine::rules::{self, Rule, RuleOrigin};

/// A value of the configuration file, with its position for errors.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct LocatedSetting<T> {
    pub(crate) value: T,
    pub(crate) line: usize,
    pub(crate) column: usize,
}

/// A list of strings, each with its position, and the position of their key.
pub(crate) type StringListWithPositions = LocatedSetting<Vec<LocatedSetting<String>>>;

/// The settings of a configuration file.
#[derive(Clone, Default, Debug)]
pub(crate) struct ConfigFile {
    /// Name of the file in messages.
    pub(crate) name: String,
    pub(crate) kubernetes: Option<StringListWithPositions>,
    /// Feature gates, in the format of `--feature-gates`.
    pub(crate) feature_gates: Option<LocatedSetting<String>>,
    pub(crate) policies: Option<StringListWithPositions>,
    pub(crate) namespaces: Option<LocatedSetting<String>>,
    pub(crate) classes: Option<StringListWithPositions>,
    pub(crate) levels: Vec<LocatedSetting<(LevelTarget, LevelSetting)>>,
    /// Warnings cause exit code 1.
    pub(crate) fails_on_warn: Option<LocatedSetting<bool>>,
    pub(crate) exclude: Option<StringListWithPositions>,
    pub(crate) baseline: Option<LocatedSetting<String>>,
    pub(crate) overrides: Vec<LevelOverride>,
}

/// Levels of rules that apply only to some paths or objects.
#[derive(Clone, Debug)]
pub(crate) struct LevelOverride {
    /// Globs of the paths that it applies to; all if empty.
    pub(crate) paths: Vec<LocatedSetting<String>>,
    /// Patterns of the objects that it applies to; all if empty.
    pub(crate) objects: Vec<ObjectPattern>,
    pub(crate) levels: Levels,
    pub(crate) reason: String,
    pub(crate) line: usize,
}

impl LevelOverride {
    /// True if the override applies to this object; its paths are compared elsewhere.
    pub(super) fn applies_to_object_ignoring_paths(&self, object: &DocumentResult<'_>) -> bool {
        self.objects.is_empty() || self.objects.iter().any(|pattern| pattern.matches(object))
    }
}

/// Globs for kind, namespace and name; an empty one matches everything.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct ObjectPattern {
    pub(crate) kind: String,
    pub(crate) namespace: String,
    pub(crate) name: String,
}

impl ObjectPattern {
    fn matches(&self, object: &DocumentResult<'_>) -> bool {
        [(&self.kind, object.kind), (&self.namespace, object.namespace), (&self.name, object.name)]
            .into_iter()
            .all(|(glob, text)| glob.is_empty() || glob_matches(glob, text))
    }
}

impl ConfigFile {
    /// Parses a configuration file. Returns all errors if it is invalid. An empty file sets nothing.
    pub(crate) fn parse(name: &str, text: &str) -> Result<ConfigFile, Vec<InputError>> {
        let (config, errors) = ConfigFile::parse_with_errors(name, text)?;
        if errors.is_empty() { Ok(config) } else { Err(errors) }
    }

    /// Parses the valid parts of a configuration file, and returns its errors as well. Fails if nothing can
    /// be parsed.
    pub(crate) fn parse_with_errors(
        name: &str,
        text: &str,
    ) -> Result<(ConfigFile, Vec<InputError>), Vec<InputError>> {
        let lines = LineIndex::from_text(text);
        let fault = |at, message: &str| vec![InputError::at(name, &lines, at, message)];
        let mut all = documents(text);
        let document = match all.next() {
            None => {
                let empty = ConfigFile { name: name.to_owned(), ..ConfigFile::default() };
                return Ok((empty, Vec::new()));
            }
            Some(Err(error)) => return Err(fault(error.at, &error.message)),
            Some(Ok(document)) => document,
        };
        if let Some(other) = all.next() {
            let at = other.map_or_else(|error| error.at, |other| other.offset);
            return Err(fault(at, "a configuration file must contain a single document"));
        }
        if document.doc.root().kind() != ValueKind::Object {
            let at = document.offset + document.doc.root().span().start as usize;
            return Err(fault(at, "a configuration file must be a mapping, such as `kubernetes: 1.37`"));
        }
        let mut errors = document_errors(name, &document, &lines, &CONFIG_SCHEMA);
        let mut reader = ConfigReader { name, document: &document, lines: &lines, errors: Vec::new() };
        let mut config = reader.read_config();
        let gates = document.doc.root().get("featureGates").span();
        let gates = document.offset + gates.start as usize..=document.offset + gates.end as usize;
        // Of gates that do not have their type, no more can be said.
        config.feature_gates.take_if(|_| errors.iter().any(|error| gates.contains(&error.at)));
        // A value of the wrong type is wrong to the reader, too; once is enough.
        let is_new = |error: &InputError| errors.iter().all(|known| known.line != error.line);
        let more: Vec<InputError> = reader.errors.into_iter().filter(is_new).collect();
        errors.extend(more);
        errors.sort_by_key(|error| (error.line, error.column));
        Ok((config, errors))
    }
}

/// Reads the settings of a configuration file, and collects errors. A value of the wrong type is read as empty.
struct ConfigReader<'r> {
    name: &'r str,
    document: &'r Document<'r>,
    lines: &'r LineIndex<'r>,
    errors: Vec<InputError>,
}

impl ConfigReader<'_> {
    fn read_config(&mut self) -> ConfigFile {
        let root = self.document.doc.root();
        let at = Path::ROOT;
        let overrides_at = at.field("overrides");
        let items = root.get("overrides").items().enumerate();
        ConfigFile {
            name: self.name.to_owned(),
            kubernetes: self.read_strings(root, "kubernetes"),
            feature_gates: self.read_setting(root, "featureGates", false, |gates, _| match gates.kind() {
                ValueKind::Object => {
                    let gates =
                        gates.members().map(|(gate, is_on)| format!("{}={}", gate.text(), is_on.text()));
                    gates.collect::<Vec<_>>().join(",")
                }
                _ => gates.str().to_owned(),
            }),
            policies: self.read_strings(root, "policies"),
            namespaces: self.read_setting(root, "namespaces", false, |path, _| path.str().to_owned()),
            classes: self.read_strings(root, "classes"),
            levels: self.read_levels(root.get("levels"), &at.field("levels")),
            fails_on_warn: self.read_setting(root, "failOn", false, |word, _| word.str() == "warn"),
            exclude: self.read_strings(root, "exclude"),
            baseline: self.read_setting(root, "baseline", false, |path, _| path.str().to_owned()),
            overrides: items
                .map(|(index, item)| self.read_override(item, &overrides_at.index(index)))
                .collect(),
        }
    }

    fn read_override(&mut self, item: Value<'_>, at: &Path<'_>) -> LevelOverride {
        let objects = item.get("objects").items().map(|object| ObjectPattern {
            kind: object.get("kind").str().to_owned(),
            namespace: object.get("namespace").str().to_owned(),
            name: object.get("name").str().to_owned(),
        });
        let paths = self.read_string_or_strings(item.get("paths"), &at.field("paths"));
        let objects: Vec<ObjectPattern> = objects.collect();
        if paths.is_empty() && objects.is_empty() {
            self.add_error(
                at,
                "requires `paths` or `objects`; to set levels everywhere, use the top-level `levels`",
            );
        }
        let reason = item.get("reason").str().trim();
        if reason.is_empty() {
            self.add_error(&at.field("reason"), "must not be empty");
        }
        let mut levels = Levels::default();
        for level in self.read_levels(item.get("levels"), &at.field("levels")) {
            levels.set(level.value.0, level.value.1);
        }
        LevelOverride {
            paths,
            objects,
            levels,
            reason: reason.to_owned(),
            line: self.located((), at, false).line,
        }
    }

    fn read_levels(
        &mut self,
        levels: Value<'_>,
        at: &Path<'_>,
    ) -> Vec<LocatedSetting<(LevelTarget, LevelSetting)>> {
        let mut read = Vec::new();
        for (key, member) in levels.members() {
            let setting = LevelSetting::ALL.into_iter().find(|setting| setting.name() == member.str());
            let Some((target, setting)) = LevelTarget::from_name(key.text()).zip(setting) else { continue };
            let member_at = at.field(key.text());
            if lowers_non_lint(target, setting) {
                let name = target.rule_or_origin_name();
                let message = format!(
                    "a configuration file can lower only the levels of lints; use `--{} {name}` on the command line",
                    setting.name()
                );
                self.add_error(&member_at, message);
            }
            read.push(self.located((target, setting), &member_at, true));
        }
        read
    }

    fn read_strings(&self, root: Value<'_>, key: &str) -> Option<StringListWithPositions> {
        self.read_setting(root, key, true, |value, at| self.read_string_or_strings(value, at))
    }

    /// Reads the strings of a value that is a string or a list of strings.
    fn read_string_or_strings(&self, value: Value<'_>, at: &Path<'_>) -> Vec<LocatedSetting<String>> {
        let setting = |value: Value<'_>, at: &Path<'_>| {
            self.located(scalar_text_as_written(value).to_owned(), at, false)
        };
        match value.kind() {
            ValueKind::String | ValueKind::Number => vec![setting(value, at)],
            _ => value.items().enumerate().map(|(index, item)| setting(item, &at.index(index))).collect(),
        }
    }

    /// Reads a setting, with the position of its key (`on_key`) or of its value.
    fn read_setting<T>(
        &self,
        root: Value<'_>,
        key: &str,
        on_key: bool,
        read: impl Fn(Value<'_>, &Path<'_>) -> T,
    ) -> Option<LocatedSetting<T>> {
        let (value, at) = (root.get(key), Path::ROOT);
        let at = at.field(key);
        value.exists().then(|| self.located(read(value, &at), &at, on_key))
    }

    fn located<T>(&self, value: T, at: &Path<'_>, on_key: bool) -> LocatedSetting<T> {
        let location = self.document.locate(self.lines, &at.owned(), on_key);
        LocatedSetting { value, line: location.line, column: location.column }
    }

    fn add_error(&mut self, at: &Path<'_>, message: impl Into<String>) {
        let at = at.owned();
        let message =
            format!("{}: {}", at.print(tollgate_document::field::PathAudience::User), message.into());
        let at = self.document.locate(self.lines, &at, false).bytes.start;
        self.errors.push(InputError::at(self.name, self.lines, at, message));
    }
}

/// Returns a string or number as it is written: the release `1.40` is not 1.4.
pub(crate) fn scalar_text_as_written(value: Value<'_>) -> &str {
    let span = value.span();
    match value.kind() {
        ValueKind::Number => {
            value.doc().source().get(span.start as usize..span.end as usize).unwrap_or_default()
        }
        _ => value.str(),
    }
}

/// True if the setting lowers the level of a rule that is not a lint, which a configuration file must not do.
fn lowers_non_lint(target: LevelTarget, setting: LevelSetting) -> bool {
    let is_lowered = |rule: &Rule| setting.level().is_none_or(|level| level < rule.level);
    match target {
        LevelTarget::Rule(rule) => rule.origin != RuleOrigin::Lint && is_lowered(rule),
        LevelTarget::Origin(RuleOrigin::Lint) => false,
        LevelTarget::Origin(origin) => rules::all().filter(|rule| rule.origin == origin).any(is_lowered),
    }
}

#[cfg(test)]
mod tests {
    use super::ConfigFile;

    fn errors(text: &str) -> String {
        let errors = ConfigFile::parse("c.yaml", text).expect_err(text);
        errors.iter().map(ToString::to_string).collect::<Vec<_>>().join("\n")
    }

    #[test]
    fn every_key_is_read_with_its_position() {
        let text = "# ours\nkubernetes: '1.37'\nfeatureGates: {DRADeviceTaints: true, DRAAdminAccess: false}\n\
                    policies:\n- policies\n- more.yaml\nnamespaces: ns.yaml\nlevels:\n  lint: deny\n  duplicate-taint: allow\n\
                    failOn: warn\nexclude: [vendor/]\noverrides:\n- paths: [charts/**]\n  objects: [{kind: Resource*, name: a}]\n  \
                    levels: {blanket-toleration: allow}\n  reason: not ours\n";
        let config = ConfigFile::parse("c.yaml", text).expect("a configuration");
        let first = |strings: &Option<super::StringListWithPositions>| {
            let strings = strings.as_ref().expect("set");
            (
                strings.line,
                strings.value.iter().map(|item| (item.value.clone(), item.line)).collect::<Vec<_>>(),
            )
        };
        assert_eq!(first(&config.kubernetes), (2, vec![("1.37".to_owned(), 2)]));
        assert_eq!(config.feature_gates.expect("set").value, "DRADeviceTaints=true,DRAAdminAccess=false");
        assert_eq!(
            first(&config.policies),
            (4, vec![("policies".to_owned(), 5), ("more.yaml".to_owned(), 6)])
        );
        let levels: Vec<_> = config
            .levels
            .iter()
            .map(|l| (l.value.0.rule_or_origin_name(), l.value.1.name(), l.line))
            .collect();
        assert_eq!(levels, [("lint", "deny", 9), ("duplicate-taint", "allow", 10)]);
        assert!(config.fails_on_warn.expect("set").value);
        let [only] = config.overrides.as_slice() else { panic!("one override") };
        assert_eq!((only.line, only.reason.as_str()), (14, "not ours"));
        let object = |name| super::DocumentResult {
            kind: "ResourceClaim",
            namespace: "any",
            name,
            ..super::DocumentResult::default()
        };
        assert!(
            only.applies_to_object_ignoring_paths(&object("a"))
                && !only.applies_to_object_ignoring_paths(&object("b"))
        );
        let config = ConfigFile::parse("c.yaml", "kubernetes: [1.36, 1.40]\n").expect("a configuration");
        assert_eq!(first(&config.kubernetes).1, [("1.36".to_owned(), 1), ("1.40".to_owned(), 1)]);
        assert!(ConfigFile::parse("c.yaml", "# nothing\n").expect("nothing").levels.is_empty());
    }

    #[test]
    fn only_lints_can_be_lowered() {
        for (line, lowered) in [
            ("lint: allow", false),
            ("blanket-toleration: warn", false),
            ("taint-effect: deny", false),
            ("upstream: deny", false),
            ("policy: deny", false),
            ("taint-effect: warn", true),
            ("findings-left-out: allow", true),
            ("upstream: allow", true),
            ("documented: warn", true),
            ("policy: warn", true),
            ("policy-toleration: allow", true),
            ("strict: allow", true),
        ] {
            let in_levels = format!("levels: {{{line}}}");
            let in_override = format!("overrides: [{{paths: ['*'], reason: because, levels: {{{line}}}}}]");
            for text in [in_levels, in_override] {
                let result = ConfigFile::parse("c.yaml", &text);
                assert_eq!(result.is_err(), lowered, "{text}");
                if let Err(errors) = result {
                    let name = line.split(':').next().unwrap_or_default();
                    assert!(errors[0].message.contains(&format!(" {name}` on the command line")));
                }
            }
        }
    }

    #[test]
    fn faults_have_positions_and_suggestions() {
        for (text, expected) in [
            ("kubernets: 1.37", "c.yaml:1:1: kubernets: unknown field; did you mean `kubernetes`?"),
            (
                "levels:\n  blanket-tolerations: allow\n",
                "c.yaml:2:3: levels.blanket-tolerations: unknown name; did you mean `blanket-toleration`?",
            ),
            ("levels: {lint: off}", "c.yaml:1:16: levels.lint: expected a string, found a boolean"),
            (
                "levels: {lint: 'no'}",
                "c.yaml:1:16: levels.lint: \"no\" is not supported; use `deny`, `warn` or `allow`",
            ),
            ("kubernetes: yes", "c.yaml:1:13: kubernetes: expected a string or a list, found a boolean"),
            ("- a", "c.yaml:1:1: a configuration file must be a mapping, such as `kubernetes: 1.37`"),
            ("a: [", "c.yaml:1:4: yaml: "),
            (
                "failOn: warn\n---\nfailOn: deny\n",
                "c.yaml:3:1: a configuration file must contain a single document",
            ),
            (
                "overrides: [{levels: {lint: allow}, reason: x}]",
                "c.yaml:1:13: overrides[0]: requires `paths` or `objects`; to set levels everywhere, use",
            ),
            (
                "overrides: [{paths: [a], levels: {lint: allow}}]",
                "c.yaml:1:13: overrides[0].reason: this field is required",
            ),
            (
                "overrides: [{paths: [a], levels: {lint: allow}, reason: ' '}]",
                "c.yaml:1:57: overrides[0].reason: must not be empty",
            ),
            ("levels: {lint: warn, lint: deny}", "c.yaml:1:22: levels.lint: this field is set twice"),
        ] {
            assert!(errors(text).starts_with(expected), "{text}\n{}\n{expected}", errors(text));
        }
    }
}
