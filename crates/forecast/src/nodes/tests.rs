//! Filters and scores on small clusters.
