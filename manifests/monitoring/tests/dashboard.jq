# The queries of the dashboard as recording rules: promtool reads no dashboards.
[.. | objects | .expr? | strings | gsub("\\$__rate_interval"; "5m")]
| to_entries
| {groups: [{name: "dashboard", rules: map({record: "dashboard:query\(.key)", expr: .value})}]}
