//! A planned prompt at a moment: its routes beside other prompts and streams.

use lapwing_engine::Engine;
use lapwing_engine::plan::{RatedMoment, Scene};
use lapwing_traces::text::counted;
use serde::Serialize;

use super::{Args, ms};
use crate::cli::failure::Failure;
use crate::cli::table::{Align, table};
use crate::cli::visible::visible;

/// The routes of the first chunk, and the least time of all prompts.
#[derive(Serialize)]
pub(super) struct MomentReport {
    streams: usize,
    /// Tokens of all prompts; the planned one is the last.
    prompts: Vec<usize>,
    /// Rows of the first chunk of the planned one.
    rows: usize,
    /// Time of a step of the streams alone, and from one to the next beside prompts.
    step_ms: Option<f64>,
    step_gap_ms: Option<f64>,
    #[serde(skip)]
    step_devices: String,
    /// Devices that give the same bits, class by class.
    classes: Vec<Vec<String>>,
    devices: Vec<Device>,
    area_ms: f64,
    path_ms: f64,
    bound_ms: f64,
    routes: Vec<Route>,
    /// Time of all prompts if each chunk takes the route on which it ends first.
    all_ms: f64,
    ratio: f64,
}

#[derive(Serialize)]
struct Device {
    device: String,
    /// When it will have done what it has begun or been sent.
    free_ms: f64,
    /// Price of its time in the bound.
    price: f64,
}

#[derive(Serialize)]
struct Route {
    devices: String,
    strategy: String,
    alone_ms: f64,
    end_ms: f64,
    all_ms: f64,
    /// Time of all prompts / bound.
    ratio: f64,
    chosen: bool,
}

impl MomentReport {
    /// The moment of `plan --with` in this engine.
    pub(super) fn of(engine: &Engine, args: &Args, scene: &Scene) -> Result<MomentReport, Failure> {
        let scene = Scene { token_gap: args.engine.token_gap, ..scene.clone() };
        let rated = engine.explain_moment(args.prompt_tokens, &scene)?;
        let rated = rated.ok_or_else(|| {
            let need = "--with needs several devices whose times are known, as with --device phone";
            Failure::usage(need.to_owned())
        })?;
        let prompts = scene.prompts.iter().copied().chain([args.prompt_tokens]).collect();
        Ok(MomentReport::new(engine, &rated, prompts).with_streams(scene.streams))
    }

    fn new(engine: &Engine, rated: &RatedMoment, prompts: Vec<usize>) -> MomentReport {
        let bound = rated.bound.time();
        let ratio = |time: f64| time / ms(bound).max(f64::MIN_POSITIVE);
        let route = |(at, route): (usize, &lapwing_engine::plan::RatedCandidate)| {
            let reason = &route.candidate.route.reason;
            Route {
                devices: route.candidate.devices.to_string(),
                strategy: reason.split(" (").next().unwrap_or_default().to_owned(),
                alone_ms: ms(route.candidate.alone),
                end_ms: ms(route.end),
                all_ms: ms(route.all),
                ratio: ratio(ms(route.all)),
                chosen: at == rated.chosen,
            }
        };
        let lanes = rated.moment.lanes.iter().zip(engine.devices());
        let devices = lanes.enumerate().map(|(at, (lane, device))| Device {
            device: device.name.clone(),
            free_ms: ms(lane.time),
            price: rated.bound.prices.get(at).copied().unwrap_or(0.0),
        });
        let step = rated.step.as_ref();
        MomentReport {
            streams: 0,
            prompts,
            rows: rated.rows,
            step_ms: step.map(|step| ms(step.alone)),
            step_gap_ms: step.map(|step| ms(step.gap)),
            step_devices: step.map(|step| step.devices.to_string()).unwrap_or_default(),
            classes: engine.arithmetic_classes(),
            devices: devices.collect(),
            area_ms: ms(rated.bound.area),
            path_ms: ms(rated.bound.path),
            bound_ms: ms(bound),
            routes: rated.candidates.iter().enumerate().map(route).collect(),
            all_ms: ms(rated.all),
            ratio: ratio(ms(rated.all)),
        }
    }

    fn with_streams(self, streams: usize) -> MomentReport {
        MomentReport { streams, ..self }
    }

    /// The moment as text.
    pub(super) fn text(&self) -> String {
        let prompts: Vec<String> = self.prompts.iter().map(usize::to_string).collect();
        let prompts = prompts.join(" + ");
        let classes: Vec<String> = self.classes.iter().map(|class| class.join(", ")).collect();
        let free = self.devices.iter().map(|it| format!("{} {:.0} ms", it.device, it.free_ms));
        let free: Vec<String> = free.collect();
        let prices = self.devices.iter().map(|it| format!("{} {:.2}", it.device, it.price));
        let prices: Vec<String> = prices.collect();
        let mut text = format!(
            "\nprompts of {prompts} tokens beside {}\ndevices with the same bits: {}\n",
            counted(self.streams, "stream"),
            visible(&classes.join(" | ")),
        );
        if let (Some(step), Some(gap)) = (self.step_ms, self.step_gap_ms) {
            let devices = visible(&self.step_devices);
            text.push_str(&format!(
                "step of the streams: {step:.1} ms on {devices}, every {gap:.0} ms beside prompts on its devices\n"
            ));
        }
        text.push_str(&format!(
            "free after: {}\nbound of all prompts: {:.0} ms (prices: {})\n\n",
            visible(&free.join(", ")),
            self.bound_ms,
            visible(&prices.join(", ")),
        ));
        let header = [
            ("route", Align::Left),
            ("strategy", Align::Left),
            ("alone, ms", Align::Right),
            ("end, ms", Align::Right),
            ("all prompts, ms", Align::Right),
            ("/ bound", Align::Right),
            ("", Align::Left),
        ];
        let row = |route: &Route| {
            [
                route.devices.clone(),
                route.strategy.clone(),
                format!("{:.1}", route.alone_ms),
                format!("{:.1}", route.end_ms),
                format!("{:.0}", route.all_ms),
                format!("{:.2}", route.ratio),
                if route.chosen { "chosen" } else { "" }.to_owned(),
            ]
        };
        let [all, ratio] = [format!("{:.0}", self.all_ms), format!("{:.2}", self.ratio)];
        let none = String::new;
        let last = ["by the moment".to_owned(), none(), none(), none(), all, ratio, none()];
        let rows = self.routes.iter().map(row).chain([last]).collect();
        let title = format!("first chunk of the last prompt, {}:", counted(self.rows, "row"));
        format!("{text}{title}\n{}\n", table(header, rows))
    }
}
