//! Every type in a public signature can be named with this crate alone: each line binds a function,
//! a field or a conversion to a type that is written out.

use std::collections::BTreeMap;
use std::error::Error as StdError;

use lapwing::error::{
    BindError, ChatError, DeviceError, DeviceSpecError, FetchError, KvTooLarge, MatrixError,
    MeasureError, MetadataError, ModelError, NameError, PackError, PlanError, ProfileError,
    SamplingError, SplitFault, TokenizerError, UnknownKvDtype, UnknownRequant, WeightError,
};
use lapwing::{Engine, EngineBuilder, Error, Request, Token, TokenStream};

fn converts<Cause: Into<Error> + StdError + Send + Sync + 'static>() {}

#[test]
fn every_error_that_converts_can_be_named() {
    converts::<BindError>();
    converts::<ChatError>();
    converts::<DeviceSpecError>();
    converts::<FetchError>();
    converts::<KvTooLarge>();
    converts::<MeasureError>();
    converts::<ModelError>();
    converts::<NameError>();
    converts::<PlanError>();
    converts::<ProfileError>();
    converts::<SamplingError>();
    converts::<TokenizerError>();
    converts::<WeightError>();
    converts::<lapwing::RunError>();
    let _: fn(SplitFault) -> WeightError = WeightError::from;
    let _: fn(MetadataError) -> TokenizerError = TokenizerError::from;
    let _: fn(&str) -> Result<lapwing::KvDtype, UnknownKvDtype> = str::parse;
    let _: fn(&str) -> Result<lapwing::Requant, UnknownRequant> = str::parse;
    let _: Option<(MatrixError, PackError, DeviceError)> = None;
}

#[test]
fn every_type_of_an_engine_and_its_answers_can_be_named() {
    let _: fn(&Engine) -> &lapwing::ModelConfig = Engine::model;
    let _: fn(&Engine) -> lapwing::SlotStats = Engine::slots;
    let _: fn(&Engine) -> &lapwing::tokenizer::Tokenizer = Engine::tokenizer;
    let _: fn(&Engine) -> Option<&lapwing::chat::ChatTemplate> = Engine::chat_template;
    let _: fn(&Engine, usize) -> Result<lapwing::plan::strategy::Explanation, Error> =
        Engine::explain;
    let _: fn(&EngineBuilder) -> Result<lapwing::profile::Identity, Error> =
        EngineBuilder::identity;
    let _: fn(EngineBuilder, lapwing::profile::Profile) -> EngineBuilder = EngineBuilder::profile;
    let _: fn(&Engine, Request) -> Result<TokenStream, Error> = Engine::generate_blocking;
    let _: fn(&mut TokenStream) -> lapwing::BlockingTokens<'_> = TokenStream::blocking;
    let _: fn(&Token) -> &[lapwing::TokenLogprob] = |token| &token.top_logprobs;
    let _: fn(&Error) -> Option<&lapwing::error::ChatFault> = Error::chat_fault;
    let _: fn(&lapwing::Requantized) -> &Vec<lapwing::DType> = |changed| &changed.from;
    let _: Option<(lapwing::EmbedRequest, lapwing::Embedding, lapwing::Pooling)> = None;
    fn is_stream<S: lapwing::Stream<Item = Result<Token, Error>>>() {}
    is_stream::<TokenStream>();
}

#[cfg(feature = "structured")]
#[test]
fn every_type_of_tools_and_of_divided_answers_can_be_named() {
    converts::<lapwing::error::GrammarError>();
    converts::<lapwing::error::ToolError>();
    converts::<lapwing::tools::ArgumentsError>();
    let _: fn(&Token) -> &[lapwing::Part] = |token| &token.parts;
    let _: fn(&lapwing::Summary) -> &[lapwing::ToolCall] = lapwing::Summary::calls;
    let _: fn(&lapwing::Summary) -> Option<&lapwing::Answer> = |summary| summary.answer.as_ref();
    let _: fn(&lapwing::ToolCall) -> Result<String, lapwing::tools::ArgumentsError> =
        lapwing::ToolCall::arguments_as;
    let _: Option<(lapwing::Tool, lapwing::ToolChoice, lapwing::Tools)> = None;
    let _: Option<(lapwing::parts::AnswerForm, lapwing::parts::AnswerReader)> = None;
}

#[test]
fn every_type_of_a_strategy_of_ones_own_can_be_named() {
    use lapwing::plan::{self, Batch, BatchSpan, DeviceInfo, Graph, MemoryDomain, ModelId, OpSet};
    let _: fn(&Batch) -> (&[BatchSpan], ModelId) = |batch| (&batch.spans, batch.model);
    let _: fn(&DeviceInfo) -> (MemoryDomain, OpSet) = |info| (info.memory, info.ops);
    let _: fn(&Graph) -> &[plan::WeightSpec] = Graph::weights;
    let _: fn(&Graph) -> &[plan::RopeSpec] = Graph::ropes;
    let _: fn(&Graph, plan::ValueId) -> plan::ValueSpec = Graph::value;
    let _: fn(&Graph) -> Option<&plan::KvLayout> = Graph::kv;
    let _: Option<(plan::Activation, plan::AttentionOp, plan::NewNode, plan::PageId)> = None;
    let _: fn(EngineBuilder, plan::Strategies) -> EngineBuilder = EngineBuilder::strategies;
    let _: Option<(plan::ChoiceError, plan::Parameter, plan::Parameters, plan::StrategyEntry)> =
        None;
    let _: fn(&plan::Stage) -> plan::StageWork = |stage| stage.work.clone();
    let _: Option<(plan::NodeLoad, plan::Prediction, plan::Solution, plan::Cost)> = None;
    let _: Option<(lapwing::profile::PrepareSample, lapwing::compare::IdleFigure)> = None;
    let _: Option<(lapwing::simulate::Workload, lapwing::simulate::SyncMode)> = None;
}

#[test]
fn a_file_is_read_with_the_types_of_this_crate() {
    let metadata: fn(&lapwing::weights::WeightFile) -> &lapwing::weights::Metadata =
        lapwing::weights::WeightFile::metadata;
    let _: Result<lapwing::tokenizer::Tokenizer, TokenizerError> =
        lapwing::weights::WeightFile::open("/nowhere/model.gguf".as_ref())
            .map_or(Err(TokenizerError::EmptyVocabulary), |file| {
                lapwing::tokenizer::Tokenizer::from_metadata(metadata(&file))
            });
    let options = lapwing::chat::ChatOptions {
        variables: BTreeMap::from([("enable_thinking".into(), lapwing::serde_json::json!(false))]),
        ..Default::default()
    };
    assert_eq!(options.variables["enable_thinking"], false);
}
