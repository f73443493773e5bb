//! The command line, and what it leads to.

use std::fmt;
use std::process::ExitCode;

use clap::Parser;
use dynamo_backend_common::RuntimeConfig;
use dynamo_kv_router::KvRouterConfig;
use dynamo_runtime::{DistributedRuntime, Worker, logging};
use lapwing_engine::policy::ChoiceError;
use lapwing_engine::routing::RouteChoice;

use crate::serve;

const EXAMPLES: &str = "\
Examples:
  lapwing-frontend --router d2lpm
  lapwing-frontend --router preble:balance=3 --discovery-backend etcd --http-port 8000

docs/workers.md describes the policies, docs/cluster.md the cluster.";

/// Dynamo's own router, beside Lapwing's policies.
const DYNAMO: &str = "kv";

/// Dynamo's HTTP frontend for workers of NVIDIA Dynamo, with Lapwing's routing policies.
#[derive(Clone, Debug, Parser)]
#[command(name = "lapwing-frontend", version, after_help = EXAMPLES, max_term_width = 100)]
pub struct Options {
    /// Who chooses the workers: a policy, as NAME or NAME:KEY=VALUE,…; or kv, Dynamo's own router
    #[arg(long, default_value = DYNAMO, value_name = "POLICY", help_heading = "Routing")]
    pub router: String,

    /// Seconds for which a request that was sent counts as cached before events say so
    #[arg(long, default_value_t = 5.0, value_name = "SECONDS", help_heading = "Routing")]
    pub router_predicted_ttl_secs: f64,

    /// Cost of a block of a prompt beside one of a running request; only of --router kv [default: 1]
    #[arg(long, value_name = "FACTOR", help_heading = "Routing")]
    pub router_prefill_load_scale: Option<f64>,

    /// How often an answer goes on at another worker when its own is lost
    #[arg(long, default_value_t = 3, value_name = "TIMES", help_heading = "Routing")]
    pub migration_limit: u32,

    /// Namespace of the workers [default: all]
    #[arg(long, env = "DYN_NAMESPACE", help_heading = "Workers")]
    pub namespace: Option<String>,

    /// Address on which the server listens
    #[arg(long, default_value = "127.0.0.1", value_name = "HOST", help_heading = "Server")]
    pub http_host: String,

    /// Port on which the server listens
    #[arg(long, default_value_t = 8000, value_name = "PORT", help_heading = "Server")]
    pub http_port: u16,

    /// How the parts of a cluster find each other and talk.
    #[command(flatten)]
    pub runtime: RuntimeConfig,
}

/// Who chooses the workers.
#[derive(Clone, Debug)]
pub enum Choice {
    /// Dynamo's router.
    Dynamo,
    /// One of Lapwing's policies.
    Policy(RouteChoice),
}

impl Options {
    /// Serves until SIGTERM or SIGINT.
    ///
    /// # Errors
    /// When an option is wrong, or Dynamo cannot serve.
    pub fn run(self) -> Result<(), StartError> {
        let choice = self.choice()?;
        let config = self.router_config(&choice)?;
        let mut runtime = self.runtime.clone();
        runtime.discovery_backend.get_or_insert_with(|| "file".to_owned());
        logging::init();
        let distributed = runtime.to_distributed_config().map_err(StartError::Dynamo)?;
        let worker = Worker::from_settings().map_err(StartError::Dynamo)?;
        let serving = worker.execute(move |runtime| async move {
            let runtime = DistributedRuntime::new(runtime, distributed).await?;
            serve::run(runtime, self, choice, config).await
        });
        serving.map_err(StartError::Dynamo)
    }

    /// Who chooses the workers.
    ///
    /// # Errors
    /// When no policy has that name, a parameter is wrong, or an option is of another router.
    pub fn choice(&self) -> Result<Choice, StartError> {
        if self.router == DYNAMO {
            return Ok(Choice::Dynamo);
        }
        let choice = RouteChoice::from(self.router.as_str());
        let made = choice.make().map(drop);
        made.map_err(StartError::Router)?;
        match self.router_prefill_load_scale {
            Some(_) => Err(StartError::Scale),
            None => Ok(Choice::Policy(choice)),
        }
    }

    fn router_config(&self, choice: &Choice) -> Result<KvRouterConfig, StartError> {
        let mut config = KvRouterConfig {
            router_predicted_ttl_secs: Some(self.router_predicted_ttl_secs),
            ..KvRouterConfig::default()
        };
        if let (Choice::Dynamo, Some(scale)) = (choice, self.router_prefill_load_scale) {
            config.prefill_load_scale = scale;
        }
        config.validate_config().map_err(|error| StartError::Number(error.to_string()))?;
        Ok(config)
    }
}

/// Why the frontend cannot be started. The message says what to do.
#[derive(Debug)]
pub enum StartError {
    /// No such policy, or a wrong parameter of one.
    Router(ChoiceError),
    /// An option that a policy does not have.
    Scale,
    /// A number of Dynamo's router is out of range.
    Number(String),
    /// Dynamo cannot serve.
    Dynamo(anyhow::Error),
}

impl StartError {
    /// Prints the message to stderr, and returns the exit code: 2 for wrong usage, otherwise 1.
    pub fn report(&self) -> ExitCode {
        eprintln!("error: {self}");
        ExitCode::from(if matches!(self, StartError::Dynamo(_)) { 1 } else { 2 })
    }
}

impl fmt::Display for StartError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            StartError::Router(error @ ChoiceError::Unknown { .. }) => {
                write!(f, "--router: {error}, or {DYNAMO}, Dynamo's own router")
            }
            StartError::Router(error) => write!(f, "--router: {error}"),
            StartError::Scale => write!(
                f,
                "--router-prefill-load-scale is of Dynamo's own router: leave it out, or choose --router {DYNAMO}"
            ),
            StartError::Number(error) => f.write_str(error),
            StartError::Dynamo(error) => write!(f, "{error:#}"),
        }
    }
}

impl std::error::Error for StartError {}

#[cfg(test)]
mod tests {
    use lapwing_engine::routing::known;

    use super::*;

    fn options(more: &[&str]) -> Options {
        Options::parse_from(["lapwing-frontend"].iter().chain(more))
    }

    #[test]
    fn every_policy_is_a_router_and_kv_is_dynamos() {
        assert!(matches!(options(&[]).choice(), Ok(Choice::Dynamo)));
        for policy in known() {
            let choice = options(&["--router", policy.name()]).choice().expect("a policy");
            assert!(matches!(choice, Choice::Policy(choice) if choice.name() == policy.name()));
        }
        let choice = options(&["--router", "d2lpm:quantum=100"]).choice();
        assert!(matches!(choice, Ok(Choice::Policy(_))));
    }

    #[test]
    fn wrong_routers_are_refused_by_name() {
        for (router, words) in [("e3", "or kv"), ("e3", "preble"), ("d2lpm:quanta=3", "quantum")] {
            let error = options(&["--router", router]).choice().expect_err(router).to_string();
            assert!(error.contains(router.split(':').next().unwrap_or_default()), "{error}");
            assert!(error.contains(words), "{error}");
        }
    }

    #[test]
    fn no_option_of_another_router_is_ignored() {
        let scale = ["--router-prefill-load-scale", "4"];
        let kv = options(&scale);
        let config = kv.router_config(&Choice::Dynamo).expect("a number");
        assert_eq!(config.prefill_load_scale, 4.0);
        let error = options(&[&["--router", "preble"][..], &scale].concat()).choice();
        assert!(matches!(error, Err(StartError::Scale)));
        let wrong = options(&["--router-predicted-ttl-secs=-1"]);
        assert!(matches!(wrong.router_config(&Choice::Dynamo), Err(StartError::Number(_))));
    }
}
