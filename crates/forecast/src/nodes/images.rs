//! Image locality: how much of a pod's images a node already has.
//!
//! Nodes report only some of their images, and a state may omit them. Such images count as absent, as upstream does.

#![allow(
    clippy::cast_precision_loss,
    clippy::cast_possible_truncation,
    reason = "upstream computes with floats"
)]

use super::node::{NodeInfo, Nodes};
use super::score::MAX_SCORE;
use std::borrow::Cow;
use tollgate_document::doc::Value;

const MEBIBYTE: i64 = 1024 * 1024;
/// Size up to which the images of a pod on a node, weighted by how many nodes have them, score 0.
const MIN_SCORED_BYTES: i64 = 23 * MEBIBYTE;
/// Sizes above this, per image, do not increase the score.
const MAX_BYTES_PER_IMAGE: i64 = 1000 * MEBIBYTE;

/// The images of a node with their sizes, listed under each of their names.
pub(super) fn images_on_node(status: Value<'_>) -> Vec<(&str, i64)> {
    let images = status.get("images").items();
    let named = images.flat_map(|image| {
        let size = image.get("sizeBytes").int().unwrap_or(0);
        image.get("names").items().map(move |name| (name.str(), size))
    });
    named.collect()
}

/// The images of a pod's containers and image volumes, with normalized names.
pub(super) fn images_of_pod(spec: Value<'_>) -> Vec<Cow<'_, str>> {
    let containers = spec.get("initContainers").items().chain(spec.get("containers").items());
    let volumes = spec.get("volumes").items().map(|volume| volume.get("image"));
    let references = volumes.filter(|image| image.exists()).map(|image| image.get("reference"));
    let images = containers.map(|container| container.get("image")).chain(references);
    images.map(|image| with_default_tag(image.str())).collect()
}

/// The image name with its tag; `:latest` if it has none.
// upstream v1.37 normalizedImageName
fn with_default_tag(name: &str) -> Cow<'_, str> {
    if name.rfind(':') > name.rfind('/') { Cow::Borrowed(name) } else { Cow::Owned(format!("{name}:latest")) }
}

/// The image locality score of each node; `None` if no node has one of the images.
// upstream v1.37 ImageLocality.Score
pub(super) fn image_scores(nodes: &Nodes<'_>, images: &[Cow<'_, str>]) -> Option<Vec<i64>> {
    let has = |info: &NodeInfo<'_>, image: &str| info.images.iter().any(|&(name, _)| name == image);
    let count = |image: &Cow<'_, str>| nodes.iter().filter(|(_, info)| has(info, image)).count();
    let nodes_with: Vec<usize> = images.iter().map(count).collect();
    let score = |info: &NodeInfo<'_>| {
        let sizes = images.iter().zip(&nodes_with).filter_map(|(image, &count)| {
            // A later entry with the same name replaces an earlier one.
            let &(_, size) = info.images.iter().rev().find(|(name, _)| name == image)?;
            let spread = count as f64 / nodes.len() as f64;
            Some((size as f64 * spread) as i64)
        });
        let most = MAX_BYTES_PER_IMAGE * i64::try_from(images.len()).unwrap_or(1).max(1);
        MAX_SCORE * (sizes.sum::<i64>().clamp(MIN_SCORED_BYTES, most) - MIN_SCORED_BYTES)
            / (most - MIN_SCORED_BYTES)
    };
    let any = nodes_with.iter().any(|&count| count > 0);
    any.then(|| nodes.iter().map(|(_, info)| score(info)).collect())
}
