//! Writes the four parts of a new lint: its file, its page, a fixture and its line in the table of rules.
//! `make new-rule NAME=my-lint`
#![allow(
    clippy::print_stdout,
    clippy::disallowed_macros,
    clippy::disallowed_methods,
    reason = "a program for people that writes files of the repository"
)]

use std::error::Error;
use std::fs;
use std::path::Path;

const TABLE: &str = "crates/engine/src/rules/table.rs";
/// The end of the lints about tolerations: what is written here is one of them.
const NEXT_LINTS: &str = "        // — taints —\n";

const FILE: &str = r#"//! TODO: what the lint reports, and why it is almost surely a mistake.

use crate::rules::RuleContext;
use crate::rules::table::RULE;
use tollgate_api::view::Toleration;
use tollgate_document::field::Path;

pub(super) fn check(cx: &mut RuleContext<'_, '_>, at: &Path<'_>, toleration: Toleration<'_>) {
    let key = toleration.key();
    if key == "example.com/rule-name" {
        cx.report(RULE, &at.field("key")).invalid(key, "TODO: what is wrong").help("TODO: what to do");
    }
}
"#;

const PAGE: &str = "# rule-name

**lint · warn** TODO: what the lint reports, in one sentence.

TODO: why this is almost surely a mistake, and what to do instead.

## Warned

```yaml
tolerations:
- key: example.com/rule-name
```

## Accepted

```yaml
tolerations:
- key: example.com/another-key
```

## Releases

No Kubernetes release enforces this rule. Tollgate applies it in every profile.
";

const FIXTURE: &str = "# TODO: what is wrong
apiVersion: resource.k8s.io/v1beta2
kind: ResourceClaim
metadata: {name: a, namespace: default}
spec:
  devices:
    requests:
    - name: gpu
      exactly:
        deviceClassName: gpu.example.com
        tolerations:
        - {key: example.com/rule-name, operator: Exists, effect: NoSchedule}   #~ rule-name Invalid
";

fn main() -> Result<(), Box<dyn Error>> {
    let name = std::env::args().nth(1).unwrap_or_default();
    if !name.starts_with(|c: char| c.is_ascii_lowercase())
        || !name.chars().all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-')
    {
        return Err("give the lint a name such as `my-lint`: make new-rule NAME=my-lint".into());
    }
    let (file, rule) = (name.replace('-', "_"), name.replace('-', "_").to_uppercase());
    let table = fs::read_to_string(TABLE)?;
    if table.contains(&format!(" {rule} = ")) {
        return Err(format!("there is a rule {name} already").into());
    }
    let (before, after) = table.split_once(NEXT_LINTS).ok_or("the table has no lints about taints")?;
    let line = format!("        {file}: Toleration {{ {rule} = lint({name:?}); }}\n");
    write(TABLE, &[before, &line, NEXT_LINTS, after].concat())?;
    let filled = |text: &str| text.replace("RULE", &rule).replace("rule-name", &name);
    write(&format!("crates/engine/src/rules/lint/{file}.rs"), &filled(FILE))?;
    write(&format!("docs/rules/{name}.md"), &filled(PAGE))?;
    write(&format!("tests/rules/{name}/fires.yaml"), &filled(FIXTURE))?;
    println!("Now replace each TODO, then run `make docs` and `cargo test --test fixtures rules/{name}`.");
    Ok(())
}

fn write(path: &str, text: &str) -> Result<(), Box<dyn Error>> {
    if let Some(folder) = Path::new(path).parent() {
        fs::create_dir_all(folder)?;
    }
    fs::write(path, text)?;
    println!("wrote {path}");
    Ok(())
}
