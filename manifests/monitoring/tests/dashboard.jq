# Converts the queries of the dashboard to recording rules, because promtool cannot read dashboards.
[.. | objects | .expr? | strings | gsub("\\$__rate_interval"; "5m")]
| to_entries
| {groups: [{name: "dashboard", rules: map({record: "dashboard:query\(.key)", expr: .value})}]}
