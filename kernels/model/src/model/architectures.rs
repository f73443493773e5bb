//! The architectures: one file each, over the shared parts of the builder.

use super::architecture::Architecture;
use super::family::{Decoder, Encoder};

mod afmoe;
mod apertus;
mod arcee;
mod arctic;
mod baichuan;
mod bailingmoe;
mod bailingmoe2;
mod bailingmoe3;
mod bert;
mod bitnet;
mod bloom;
mod chatglm;
mod codeshell;
mod cogvlm;
mod cohere2;
mod cohere2moe;
mod command_r;
mod dbrx;
mod deci;
mod deepseek;
mod deepseek2;
mod deepseek2_ocr;
mod dots1;
mod ernie4_5;
mod ernie4_5_moe;
mod eurobert;
mod exaone;
mod exaone4;
mod exaone_moe;
mod falcon;
mod falcon_h1;
mod gemma;
mod gemma2;
mod gemma3;
mod gemma3n;
mod gemma4;
mod gemma_embedding;
mod glm4;
mod glm4moe;
mod gpt2;
mod gpt_oss;
mod gptneox;
mod granite;
mod granite_swa;
mod granitehybrid;
mod granitemoe;
mod grok;
mod grovemoe;
mod hrm_text;
mod hunyuan_dense;
mod hunyuan_moe;
mod hunyuan_vl;
mod hy_v3;
mod internlm2;
mod jais;
mod jais2;
mod jamba;
mod jina_bert_v2;
mod jina_bert_v3;
mod kimi_linear;
mod laguna;
mod lfm2;
mod lfm2moe;
mod llama;
mod llama4;
mod llama_embed;
mod maincoder;
mod mamba;
mod mamba2;
mod maple;
mod mellum;
mod mimo2;
mod minicpm;
mod minicpm3;
mod minimax_m2;
mod mistral3;
mod mistral4;
mod modern_bert;
mod mpt;
mod muse_glimmer;
mod nanbeige;
mod nemotron;
mod nemotron_h;
mod nemotron_h_moe;
mod neo_bert;
mod nomic_bert;
mod nomic_bert_moe;
mod olmo;
mod olmo2;
mod olmoe;
mod openelm;
mod orion;
mod paddleocr;
mod pangu_embedded;
mod phi2;
mod phi3;
mod phimoe;
mod plamo;
mod plamo2;
mod plamo3;
mod plm;
mod qwen;
mod qwen2;
mod qwen2moe;
mod qwen2vl;
mod qwen3;
mod qwen35;
mod qwen35moe;
mod qwen3moe;
mod qwen3next;
mod qwen3vl;
mod qwen3vlmoe;
mod refact;
mod seed_oss;
mod smallthinker;
mod smollm3;
mod spark2_5;
mod stablelm;
mod starcoder;
mod starcoder2;
mod step35;
mod talkie;
mod xverse;

/// All architectures.
const TABLE: [Architecture; 123] = [
    llama::ARCHITECTURE,
    llama4::ARCHITECTURE,
    deci::ARCHITECTURE,
    internlm2::ARCHITECTURE,
    nanbeige::ARCHITECTURE,
    hrm_text::ARCHITECTURE,
    qwen2::ARCHITECTURE,
    qwen3::ARCHITECTURE,
    qwen3moe::ARCHITECTURE,
    gemma2::ARCHITECTURE,
    gemma3::ARCHITECTURE,
    gemma3n::ARCHITECTURE,
    gemma4::ARCHITECTURE,
    smollm3::ARCHITECTURE,
    spark2_5::ARCHITECTURE,
    talkie::ARCHITECTURE,
    granite::ARCHITECTURE,
    granite_swa::ARCHITECTURE,
    minicpm::ARCHITECTURE,
    minicpm3::ARCHITECTURE,
    olmo2::ARCHITECTURE,
    exaone4::ARCHITECTURE,
    seed_oss::ARCHITECTURE,
    phi2::ARCHITECTURE,
    phi3::ARCHITECTURE,
    mistral3::ARCHITECTURE,
    qwen2vl::ARCHITECTURE,
    qwen3vl::ARCHITECTURE,
    cogvlm::ARCHITECTURE,
    gemma::ARCHITECTURE,
    glm4::ARCHITECTURE,
    exaone::ARCHITECTURE,
    hunyuan_dense::ARCHITECTURE,
    hunyuan_vl::ARCHITECTURE,
    maincoder::ARCHITECTURE,
    cohere2::ARCHITECTURE,
    muse_glimmer::ARCHITECTURE,
    command_r::ARCHITECTURE,
    nemotron::ARCHITECTURE,
    arcee::ARCHITECTURE,
    jais2::ARCHITECTURE,
    stablelm::ARCHITECTURE,
    gptneox::ARCHITECTURE,
    starcoder2::ARCHITECTURE,
    codeshell::ARCHITECTURE,
    falcon::ARCHITECTURE,
    ernie4_5::ARCHITECTURE,
    paddleocr::ARCHITECTURE,
    orion::ARCHITECTURE,
    xverse::ARCHITECTURE,
    baichuan::ARCHITECTURE,
    olmo::ARCHITECTURE,
    gpt2::ARCHITECTURE,
    starcoder::ARCHITECTURE,
    mpt::ARCHITECTURE,
    bloom::ARCHITECTURE,
    refact::ARCHITECTURE,
    jais::ARCHITECTURE,
    chatglm::ARCHITECTURE,
    qwen::ARCHITECTURE,
    plamo::ARCHITECTURE,
    plamo3::ARCHITECTURE,
    plm::ARCHITECTURE,
    openelm::ARCHITECTURE,
    pangu_embedded::ARCHITECTURE,
    bitnet::ARCHITECTURE,
    apertus::ARCHITECTURE,
    lfm2::ARCHITECTURE,
    qwen35::ARCHITECTURE,
    granitehybrid::ARCHITECTURE,
    nemotron_h::ARCHITECTURE,
    falcon_h1::ARCHITECTURE,
    mamba::ARCHITECTURE,
    mamba2::ARCHITECTURE,
    plamo2::ARCHITECTURE,
    qwen2moe::ARCHITECTURE,
    qwen3vlmoe::ARCHITECTURE,
    gpt_oss::ARCHITECTURE,
    granitemoe::ARCHITECTURE,
    glm4moe::ARCHITECTURE,
    deepseek::ARCHITECTURE,
    deepseek2::ARCHITECTURE,
    deepseek2_ocr::ARCHITECTURE,
    mistral4::ARCHITECTURE,
    mimo2::ARCHITECTURE,
    minimax_m2::ARCHITECTURE,
    lfm2moe::ARCHITECTURE,
    qwen35moe::ARCHITECTURE,
    qwen3next::ARCHITECTURE,
    nemotron_h_moe::ARCHITECTURE,
    kimi_linear::ARCHITECTURE,
    jamba::ARCHITECTURE,
    phimoe::ARCHITECTURE,
    olmoe::ARCHITECTURE,
    ernie4_5_moe::ARCHITECTURE,
    hunyuan_moe::ARCHITECTURE,
    dots1::ARCHITECTURE,
    bailingmoe::ARCHITECTURE,
    bailingmoe2::ARCHITECTURE,
    afmoe::ARCHITECTURE,
    smallthinker::ARCHITECTURE,
    grok::ARCHITECTURE,
    dbrx::ARCHITECTURE,
    arctic::ARCHITECTURE,
    exaone_moe::ARCHITECTURE,
    cohere2moe::ARCHITECTURE,
    mellum::ARCHITECTURE,
    hy_v3::ARCHITECTURE,
    step35::ARCHITECTURE,
    laguna::ARCHITECTURE,
    grovemoe::ARCHITECTURE,
    bailingmoe3::ARCHITECTURE,
    maple::ARCHITECTURE,
    bert::ARCHITECTURE,
    nomic_bert::ARCHITECTURE,
    nomic_bert_moe::ARCHITECTURE,
    jina_bert_v2::ARCHITECTURE,
    jina_bert_v3::ARCHITECTURE,
    modern_bert::ARCHITECTURE,
    eurobert::ARCHITECTURE,
    llama_embed::ARCHITECTURE,
    neo_bert::ARCHITECTURE,
    gemma_embedding::ARCHITECTURE,
];

impl Architecture {
    /// The architecture of that name.
    pub fn by_name(name: &str) -> Option<Architecture> {
        TABLE.into_iter().find(|architecture| architecture.name() == name)
    }
}

/// Names of the supported architectures, as in `general.architecture`, in their order in a dictionary.
pub fn supported() -> Vec<&'static str> {
    let mut names: Vec<_> = TABLE.iter().map(|architecture| architecture.name()).collect();
    names.sort_unstable();
    names
}

/// Names of the architectures whose files may have a layer that predicts a further token and can be used as a drafter.
pub(super) fn predicting() -> Vec<&'static str> {
    let able = TABLE.iter().filter(|architecture| architecture.has_predictors());
    able.map(|architecture| architecture.name()).collect()
}
