# The share of each crate's lines that ran, from the summary of llvm-cov. $root is the folder of the repository.
[.data[0].files[] | select(.filename | startswith($root))
  | {lines: .summary.lines, crate: (.filename[($root | length):] | capture("^(?<crate>crates/[^/]+|[^/]+)").crate)}]
| group_by(.crate)[]
| (map(.lines.count) | add) as $all
| (map(.lines.covered) | add) as $run
| "\(.[0].crate)\t\($run) of \($all) lines\t\(100 * $run / $all | floor)%"
