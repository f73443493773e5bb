//! Published numbers, as data: `published.toml` states for each number its source, the run that
//! simulates it, and its role.

use std::collections::BTreeMap;

use serde::Deserialize;

use super::error::SimulateError;

pub(super) mod rows;

pub use rows::{CutKind, Order, Over, Product, PublishedDecision, Quantity, Role, Row, Run};

/// Published numbers, decisions and orders.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Published {
    /// Numbers.
    #[serde(default, rename = "row")]
    pub rows: Vec<Row>,
    /// Decisions of the published solver.
    #[serde(default, rename = "decision")]
    pub decisions: Vec<PublishedDecision>,
    /// Other names of groups, such as figure numbers.
    #[serde(default)]
    pub names: BTreeMap<String, String>,
    /// Orders that hold.
    #[serde(default, rename = "order")]
    pub orders: Vec<Order>,
}

impl Published {
    /// The numbers that come with Lapwing.
    ///
    /// # Errors
    /// Never, unless the built-in file is invalid.
    pub fn built_in() -> Result<Published, SimulateError> {
        Published::parse(include_str!("published.toml"))
    }

    /// Parses numbers in the format of the built-in file.
    ///
    /// # Errors
    /// [`SimulateError::Published`] names the line.
    pub fn parse(text: &str) -> Result<Published, SimulateError> {
        let wrong = |reason: String| SimulateError::Published { reason };
        let published: Published = toml::from_str(text).map_err(|e| wrong(e.to_string()))?;
        let rows = &published.rows;
        for (at, row) in rows.iter().enumerate() {
            let id = &row.id;
            if rows[..at].iter().any(|other| other.id == *id) {
                return Err(wrong(format!("row '{id}' is given twice")));
            }
            let of_product = row.quantity.is_of_product();
            let sources = [row.run.is_some(), row.product.is_some(), row.graphs.is_some()];
            if sources.iter().filter(|given| **given).count() != 1 {
                return Err(wrong(format!("row '{id}' must have one of run, product and graphs")));
            }
            if row.product.is_some() != of_product
                || row.by_product.is_some() && row.product.is_none()
                || row.graphs.is_some() && row.quantity != Quantity::PreparationMs
            {
                return Err(wrong(format!(
                    "row '{id}': the quantity of a product is alone_us, product_gb_per_s, launch_us or \
                     entry_us, that of graphs preparation_ms"
                )));
            }
            if row.published.is_some() == (row.role == Role::HeldBack) {
                return Err(wrong(format!(
                    "row '{id}' must have a published number, unless it is held back"
                )));
            }
            if row.published.is_some_and(|number| !(number.is_finite() && number > 0.0)) {
                return Err(wrong(format!("row '{id}': published must be a positive number")));
            }
            if !(row.spread.is_finite() && row.spread > 0.0) {
                return Err(wrong(format!("row '{id}': spread must be a positive number")));
            }
            if row.prompts.is_empty() != row.over.is_none() {
                return Err(wrong(format!(
                    "row '{id}' must have both prompts and over, or neither"
                )));
            }
        }
        Ok(published)
    }

    /// The group of that name or figure number.
    ///
    /// # Errors
    /// [`SimulateError::UnknownGroup`].
    pub fn group(&self, name: &str) -> Result<&str, SimulateError> {
        let groups = self.groups();
        let subject = self.names.get(&name.to_lowercase()).map_or(name, String::as_str);
        if let Some(group) = groups.iter().find(|group| **group == subject) {
            return Ok(group);
        }
        let with_names = groups.iter().map(|group| {
            let names = self.names.iter().filter(|(_, of)| of == group);
            let names: Vec<&str> = names.map(|(name, _)| name.as_str()).collect();
            match names[..] {
                [] => (*group).to_owned(),
                _ => format!("{group} ({})", names.join(", ")),
            }
        });
        let known = with_names.collect::<Vec<_>>().join(", ");
        Err(SimulateError::UnknownGroup { name: name.to_owned(), known })
    }

    /// The groups, in the order of the file.
    pub fn groups(&self) -> Vec<&str> {
        let mut groups: Vec<&str> = Vec::new();
        for row in &self.rows {
            if !groups.contains(&row.group.as_str()) {
                groups.push(&row.group);
            }
        }
        groups
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_held_back_number_is_in_the_file() {
        let published = Published::built_in().expect("it is well-formed");
        let held = published.rows.iter().filter(|row| row.role == Role::HeldBack);
        assert!(held.clone().count() > 30);
        assert!(held.clone().all(|row| row.published.is_none()));
        assert_eq!(published.rows.iter().filter(|row| row.role == Role::Check).count(), 7);
        assert_eq!(published.decisions.len(), 9);
    }

    #[test]
    fn figure_numbers_name_groups() {
        let published = Published::built_in().expect("it is well-formed");
        for name in published.names.keys() {
            assert!(published.group(name).is_ok(), "{name}");
        }
        assert_eq!(published.group("Fig14").expect("a figure"), "lengths");
        let error = published.group("fig99").expect_err("no such").to_string();
        assert!(error.contains("lengths (fig14)"), "{error}");
    }

    #[test]
    fn errors_name_the_invalid_row() {
        let row = "[[row]]\nid = \"a\"\ngroup = \"g\"\nwhat = \"w\"\nsource = \"s\"\n";
        let run = "run = { prompt = 1, strategy = \"pipe\" }\n";
        let cases = [
            (format!("{row}{run}quantity = \"prefill_ms\"\nrole = \"pin\""), "published number"),
            (
                format!(
                    "{row}{run}quantity = \"prefill_ms\"\nrole = \"held back\"\npublished = 1.0"
                ),
                "held back",
            ),
            (
                format!("{row}quantity = \"prefill_ms\"\nrole = \"pin\"\npublished = 1.0"),
                "one of run, product and graphs",
            ),
            (
                format!("{row}{run}quantity = \"alone_us\"\nrole = \"pin\"\npublished = 1.0"),
                "the quantity of a product",
            ),
            (format!("{row}{run}quantity = \"speed\"\nrole = \"pin\"\npublished = 1.0"), "speed"),
            (
                format!("{row}{run}quantity = \"prefill_ms\"\nrole = \"pin\"\npublished = -1.0"),
                "posi",
            ),
            (format!("{row}{run}colour = 3"), "colour"),
        ];
        for (text, says) in cases {
            let error = Published::parse(&text).expect_err(says);
            assert!(error.to_string().contains(says), "{error}");
        }
    }
}
