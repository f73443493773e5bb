//! Choices, their errors, and names.

use super::*;

/// A speed, and a limit of each client.
type Made = fn(&Parameters) -> (f64, usize);

const SPEED: Parameter = Parameter::new("speed", "in m/s", 2.5, 0.5..=10.0);
const SEATS: Parameter = Parameter::new("seats", "all of them", 4.0, 1.0..=8.0);
const LOAD: Parameter = Parameter::new("load.RIDER", "of one rider, in kg", 0.0, 0.0..=200.0);
const COLOUR: Parameter = Parameter::new("colour", "number of the colour", 1.0, 0.0..=7.0);

fn vehicles() -> Registry<Made> {
    const ENTRIES: &[Entry<Made>] = &[
        Entry::new("walker", "on foot", &[], |_| (1.0, 1)),
        Entry::new("wagon", "on wheels", &[SPEED, SEATS, LOAD], |parameters| {
            (parameters.value("speed"), parameters.count("seats"))
        }),
        Entry::new("dyed", "of another colour", &[Parameter { default: 5.0, ..COLOUR }], |p| {
            (0.0, p.count("colour"))
        }),
    ];
    Registry::new("vehicle", ENTRIES, &[COLOUR])
}

fn made(text: &str) -> (f64, usize) {
    let vehicles = vehicles();
    let Chosen { entry, parameters } = vehicles.find(text).expect(text);
    entry.make()(&parameters)
}

#[test]
fn parameters_have_their_values_and_defaults() {
    let rows = [
        ("walker", (1.0, 1)),
        ("wagon", (2.5, 4)),
        ("wagon:", (2.5, 4)),
        ("wagon:seats=2", (2.5, 2)),
        ("wagon:seats=2,speed=7", (7.0, 2)),
        ("wagon:seats=2,seats=3.9", (2.5, 3)),
        ("wagon:colour=2", (2.5, 4)),
        ("dyed", (0.0, 5)),
        ("dyed:colour=6", (0.0, 6)),
    ];
    for (text, expected) in rows {
        assert_eq!(made(text), expected, "{text}");
    }
    let vehicles = vehicles();
    let of = |text| vehicles.find(text).expect(text).parameters;
    let loads: Vec<_> =
        of("wagon:load.a=7,load.b=9").each("load").map(|(r, l)| (r.to_owned(), l)).collect();
    assert_eq!(loads, [("a".to_owned(), 7.0), ("b".to_owned(), 9.0)]);
    assert!(of("wagon").are_defaults() && of("wagon:").are_defaults());
    assert!(!of("wagon:seats=4").are_defaults());
    assert_eq!((of("wagon").given("seats"), of("wagon:seats=4").given("seats")), (None, Some(4.0)));
    assert_eq!(of("wagon").seconds("speed"), std::time::Duration::from_millis(2500));
    assert_eq!(vehicles.entries()[1].defaults().count("seats"), 4);
}

#[test]
fn an_unknown_name_is_answered_with_the_known_ones_and_the_nearest() {
    let error = vehicles().find("wagons:seats=2").map(|_| ()).expect_err("unknown");
    let all = "one of walker, wagon, dyed";
    assert_eq!(error.expected(), format!("{all} (did you mean wagon?)"));
    let text = format!("there is no vehicle 'wagons'; it must be {all} (did you mean wagon?)");
    assert_eq!(error.to_string(), text);
    let error = vehicles().find("zzz").map(|_| ()).expect_err("unknown");
    assert_eq!(error.to_string(), format!("there is no vehicle 'zzz'; it must be {all}"));
}

#[test]
fn an_unknown_parameter_is_answered_with_the_known_ones() {
    let rows = [
        ("walker:x=1", "the vehicle walker has no parameter 'x'; it has colour"),
        (
            "wagon:x=1",
            "the vehicle wagon has no parameter 'x'; it has speed, seats, load.RIDER, colour",
        ),
        ("wagon:load.=1", "has no parameter 'load.'"),
        ("wagon:load=1", "has no parameter 'load'"),
        ("dyed:x", "it has colour"),
    ];
    for (text, message) in rows {
        let error = vehicles().find(text).map(|_| ()).expect_err(text);
        assert!(error.to_string().contains(message), "{text}: {error}");
        assert_eq!(error.expected(), format!("valid: {error}"));
    }
    let plain: Registry<Made> = Registry::new("vehicle", &[], &[]);
    let plain = plain.with(Entry::new("sled", "", &[], |_| (0.0, 0))).expect("a name");
    let error = plain.find("sled:x=1").map(|_| ()).expect_err("unknown").to_string();
    assert_eq!(error, "the vehicle sled has no parameter 'x'; it has none");
}

#[test]
fn a_value_out_of_bounds_is_answered_with_the_bounds() {
    for value in ["11", "0.4", "-1", "fast", "", "nan", "inf"] {
        let text = format!("wagon:speed={value}");
        let error = vehicles().find(&text).map(|_| ()).expect_err(value).to_string();
        let expected =
            format!("speed of the vehicle wagon is '{value}', but must be a number from 0.5 to 10");
        assert_eq!(error, expected);
    }
    for (text, wrong) in [("wagon:load.a=201", "load.a"), ("wagon:seats", "seats")] {
        let error = vehicles().find(text).map(|_| ()).expect_err(text).to_string();
        assert!(error.starts_with(&format!("{wrong} of the vehicle wagon is ")), "{error}");
    }
    for bound in ["0.5", "10"] {
        assert!(vehicles().find(&format!("wagon:speed={bound}")).is_ok(), "{bound}");
    }
}

#[test]
fn a_name_is_refused_if_it_is_taken_or_breaks_a_list() {
    let add = |name: &'static str| vehicles().with(Entry::new(name, "", &[], |_| (0.0, 0)));
    assert!(add("sled").expect("a name").find("sled").is_ok());
    assert!(vehicles().find("sled").is_err(), "no global state");
    let taken = add("wagon").map(|_| ()).expect_err("taken");
    assert_eq!(taken.to_string(), "there is a vehicle 'wagon' already; choose another name");
    for name in ["", "a,b", "a b", "a=b", "1:2"] {
        let error = add(name).map(|_| ()).expect_err(name);
        assert_eq!(error, NameError::Invalid { kind: "vehicle", name: name.to_owned() });
    }
}

#[test]
fn a_list_keeps_parameters_with_their_choice() {
    let rows: [(&str, &[&str]); 7] = [
        ("a", &["a"]),
        ("a, b", &["a", "b"]),
        ("a,", &["a", ""]),
        ("a:x=1,b", &["a:x=1", "b"]),
        ("b,a:x=1,y=2,c", &["b", "a:x=1,y=2", "c"]),
        ("a:x=1,b:x=2", &["a:x=1", "b:x=2"]),
        ("x=1,y=2", &["x=1", "y=2"]),
    ];
    for (list, expected) in rows {
        assert_eq!(choices(list), expected, "{list}");
    }
}
