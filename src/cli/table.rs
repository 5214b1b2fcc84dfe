//! Aligned columns for people.

use std::fmt::Write as _;

use tollgate_formats::sanitize;

/// Returns a table with aligned columns under a header. The last column is not padded; line breaks in cells are
/// replaced.
pub(super) fn format_table(header: &[&str], rows: &[Vec<String>]) -> String {
    let cells =
        |row: &Vec<String>| row.iter().map(|cell| sanitize::sanitize_as_line(cell).into_owned()).collect();
    let rows: Vec<Vec<String>> = rows.iter().map(cells).collect();
    let width = |column: usize| {
        let cells = rows.iter().filter_map(|row| row.get(column)).map(|cell| cell.chars().count());
        cells.chain(header.get(column).map(|name| name.len())).max().unwrap_or_default()
    };
    let widths: Vec<usize> = (0..header.len()).map(width).collect();
    let mut out = String::new();
    let header: Vec<String> = header.iter().map(|name| (*name).to_owned()).collect();
    for row in std::iter::once(&header).chain(&rows) {
        let mut line = String::new();
        for (cell, width) in row.iter().zip(&widths) {
            _ = write!(line, "{cell:width$}  ");
        }
        out.push_str(line.trim_end());
        out.push('\n');
    }
    out
}

#[cfg(test)]
mod tests {
    #[test]
    fn columns_line_up() {
        let rows = [vec!["a".to_owned(), "b".to_owned()], vec!["ccc".to_owned(), "d".to_owned()]];
        assert_eq!(super::format_table(&["X", "Y"], &rows), "X    Y\na    b\nccc  d\n");
        let rows = [vec!["a\nb".to_owned(), "\u{1b}".to_owned()]];
        assert_eq!(super::format_table(&["X", "Y"], &rows), "X    Y\na\u{fffd}b  \u{fffd}\n");
    }
}
