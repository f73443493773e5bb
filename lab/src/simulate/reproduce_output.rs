//! A reproduction as a page and as a table.

use super::plot::{BarGroup, Bars, Cell, Page, Section, Tone};
use super::published::Role;
use super::reproduce::{HeldBack, Reproduced, Reproduction};
use super::sweep::cell;
use crate::table::table;

impl Reproduction {
    /// One self-contained HTML page: simulated over published numbers as bars, all numbers, orders and
    /// decisions as tables.
    pub fn html(&self) -> String {
        let sections = [bars(&self.rows), numbers(self), orders(self), decisions(self)];
        Page {
            title: "Published numbers, simulated".to_owned(),
            lead: self.notes.join(". "),
            sections: sections.into_iter().flatten().collect(),
            footer: format!(
                "Lapwing {}, preset {}. {} published numbers are held back.",
                env!("CARGO_PKG_VERSION"),
                self.soc,
                self.held_back.len()
            ),
        }
        .html()
    }

    /// A CSV table with a row for each number; the published number of one that is held back is empty.
    pub fn csv(&self) -> String {
        let heads = [
            "id",
            "group",
            "what",
            "of",
            "published",
            "simulated",
            "unit",
            "error",
            "low",
            "high",
            "role",
            "source",
        ];
        let mut rows: Vec<[String; 12]> = vec![heads.map(str::to_owned)];
        for row in &self.rows {
            let Reproduced { id, group, what, of, paper, model, unit, error, .. } = row;
            let Reproduced { interval, role, source, .. } = row;
            let text = |text: &String| text.clone();
            let (paper, model, error) = (cell(*paper), cell(*model), cell(*error));
            let (unit, role) = ((*unit).to_owned(), role.to_string());
            let named = (text(id), text(group), text(what), text(of));
            let (id, group, what, of) = named;
            let ([low, high], source) = (interval.map(cell), text(source));
            rows.push([id, group, what, of, paper, model, unit, error, low, high, role, source]);
        }
        for row in &self.held_back {
            let HeldBack { id, group, what, of, model, interval, unit, source } = row.clone();
            let model = model.map_or_else(String::new, cell);
            let ends = interval.map(|ends| ends.map(cell)).unwrap_or_default();
            let ([low, high], paper, error) = (ends, String::new(), String::new());
            let (unit, role) = (unit.to_owned(), "held back".to_owned());
            rows.push([id, group, what, of, paper, model, unit, error, low, high, role, source]);
        }
        table(rows)
    }
}

fn texts<const N: usize>(names: [&str; N]) -> Vec<String> {
    names.map(str::to_owned).to_vec()
}

fn bars(rows: &[Reproduced]) -> Option<Section> {
    let checks = rows.iter().filter(|row| row.role == Role::Check);
    let group = |row: &Reproduced| BarGroup {
        name: row.id.clone(),
        values: vec![Some(row.model / row.paper)],
        published: vec![Some(1.0)],
    };
    let groups: Vec<BarGroup> = checks.map(group).collect();
    let plot = Bars {
        title: "Simulated / published".to_owned(),
        x: "check".to_owned(),
        y: "simulated number / published number".to_owned(),
        names: texts(["simulated"]),
        groups,
    };
    (!plot.groups.is_empty()).then(|| Section {
        title: "Checks".to_owned(),
        plots: vec![plot.svg()],
        ..Section::default()
    })
}

fn numbers(of: &Reproduction) -> Option<Section> {
    let row = |row: &Reproduced| {
        let tone = match row.role {
            Role::Check if row.is_missed() => Tone::Bad,
            Role::Check => Tone::Good,
            _ => Tone::Plain,
        };
        vec![
            row.group.clone().into(),
            row.what.clone().into(),
            row.of.clone().into(),
            format!("{:.2} {}", row.paper, row.unit).into(),
            format!("{:.2} {}", row.model, row.unit).into(),
            Cell { text: format!("{:+.1} %", row.error * 100.0), tone },
            format!("{:.2} to {:.2}", row.interval[0], row.interval[1]).into(),
            if row.is_outside() {
                "check, outside its interval".to_owned().into()
            } else {
                row.role.to_string().into()
            },
            row.source.clone().into(),
        ]
    };
    let heads =
        ["", "What", "Model", "#Published", "#Simulated", "#Error", "#95 %", "Role", "Source"];
    (!of.rows.is_empty()).then(|| Section {
        title: "Every number".to_owned(),
        text:
            "A pin was fitted to, and proves nothing. A check was not fitted to, and must be met \
               within 10 %. A stated number is published loosely or contradicts others."
                .to_owned(),
        heads: texts(heads),
        rows: of.rows.iter().map(row).collect(),
        ..Section::default()
    })
}

fn orders(of: &Reproduction) -> Option<Section> {
    let row = |order: &super::reproduce::ReproducedOrder| {
        let (text, tone) = if order.ok { ("holds", Tone::Good) } else { ("violated", Tone::Bad) };
        vec![
            order.what.clone().into(),
            format!("{:.2}", order.less).into(),
            format!("{:.2}", order.more).into(),
            Cell { text: text.to_owned(), tone },
        ]
    };
    (!of.orders.is_empty()).then(|| Section {
        title: "Orders".to_owned(),
        heads: texts(["What", "#Less", "#More", ""]),
        rows: of.orders.iter().map(row).collect(),
        ..Section::default()
    })
}

fn decisions(of: &Reproduction) -> Option<Section> {
    let row = |decision: &super::decisions::Decision| {
        let (text, tone) =
            if decision.same { ("same", Tone::Good) } else { ("differs", Tone::Bad) };
        vec![
            decision.product.clone().into(),
            decision.tokens.clone().into(),
            decision.paper.clone().into(),
            decision.model.clone().into(),
            Cell { text: text.to_owned(), tone },
            decision.reason.clone().into(),
        ]
    };
    (!of.decisions.is_empty()).then(|| Section {
        title: "Decisions of tensor-level, Table 3".to_owned(),
        heads: texts(["Matmul", "#Tokens", "Published", "Lapwing", "", "Why"]),
        rows: of.decisions.iter().map(row).collect(),
        ..Section::default()
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::simulate::published::Published;
    use crate::simulate::{ReproduceOptions, Scenario};

    #[test]
    fn page_and_table_have_every_number_and_what_the_checks_prove() {
        let base = Scenario::new("sd8gen3").expect("a preset");
        let published = Published::built_in().expect("numbers");
        let options = ReproduceOptions { group: Some("prefill"), predictions: false };
        let found = Reproduction::new(&base, &published, options).expect("a reproduction");
        let (html, csv) = (found.html(), found.csv());
        for row in &found.rows {
            assert!(html.contains(&row.what), "{}", row.what);
            assert!(csv.contains(&format!("{},{},", row.id, row.group)), "{}", row.id);
        }
        assert_eq!(csv.lines().count(), 1 + found.rows.len() + found.held_back.len());
        assert!(html.contains("form of the models"), "{html}");
        for row in found.held_back {
            assert_eq!(row.model, None);
            assert!(csv.lines().any(|l| l.starts_with(&row.id) && l.contains("held back")));
        }
    }
}
