//! Names of architectures in `transformers`.

/// How `transformers` calls an architecture.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Named {
    /// `model_type`.
    pub(super) model_type: &'static str,
    /// The class in `architectures`.
    pub(super) class: &'static str,
}

/// Names by `general.architecture`: those of a text model where several have one, and of a model's own code where
/// `transformers` has none.
const TABLE: &[(&str, Named)] = &[
    ("afmoe", named("afmoe", "AfmoeForCausalLM")),
    ("apertus", named("apertus", "ApertusForCausalLM")),
    ("arcee", named("arcee", "ArceeForCausalLM")),
    ("arctic", named("arctic", "ArcticForCausalLM")),
    ("baichuan", named("baichuan", "BaichuanForCausalLM")),
    ("bailingmoe", named("bailingmoe", "BailingMoeForCausalLM")),
    ("bailingmoe2", named("bailingmoe2", "BailingMoeV2ForCausalLM")),
    ("bailingmoe3", named("bailing_moe_v3", "BailingMoeV3ForCausalLM")),
    ("bert", named("bert", "BertModel")),
    ("bitnet", named("bitnet", "BitNetForCausalLM")),
    ("bloom", named("bloom", "BloomForCausalLM")),
    ("chatglm", named("glm", "GlmForCausalLM")),
    ("codeshell", named("codeshell", "CodeShellForCausalLM")),
    ("cogvlm", named("cogvlm", "CogVLMForCausalLM")),
    ("cohere2", named("cohere2", "Cohere2ForCausalLM")),
    ("cohere2moe", named("cohere2_moe", "Cohere2MoeForCausalLM")),
    ("command-r", named("cohere", "CohereForCausalLM")),
    ("dbrx", named("dbrx", "DbrxForCausalLM")),
    ("deci", named("nemotron-nas", "DeciLMForCausalLM")),
    ("deepseek", named("deepseek", "DeepseekForCausalLM")),
    ("deepseek2", named("deepseek_v2", "DeepseekV2ForCausalLM")),
    ("deepseek2-ocr", named("deepseek_vl_v2", "DeepseekOCRForCausalLM")),
    ("dots1", named("dots1", "Dots1ForCausalLM")),
    ("ernie4_5", named("ernie4_5", "Ernie4_5ForCausalLM")),
    ("ernie4_5-moe", named("ernie4_5_moe", "Ernie4_5_MoeForCausalLM")),
    ("eurobert", named("eurobert", "EuroBertModel")),
    ("exaone", named("exaone", "ExaoneForCausalLM")),
    ("exaone-moe", named("exaone_moe", "ExaoneMoeForCausalLM")),
    ("exaone4", named("exaone4", "Exaone4ForCausalLM")),
    ("falcon", named("falcon", "FalconForCausalLM")),
    ("falcon-h1", named("falcon_h1", "FalconH1ForCausalLM")),
    ("gemma", named("gemma", "GemmaForCausalLM")),
    ("gemma-embedding", named("gemma3_text", "Gemma3TextModel")),
    ("gemma2", named("gemma2", "Gemma2ForCausalLM")),
    ("gemma3", named("gemma3_text", "Gemma3ForCausalLM")),
    ("gemma3n", named("gemma3n_text", "Gemma3nForCausalLM")),
    ("gemma4", named("gemma4_text", "Gemma4ForCausalLM")),
    ("glm4", named("glm4", "Glm4ForCausalLM")),
    ("glm4moe", named("glm4_moe", "Glm4MoeForCausalLM")),
    ("gpt-oss", named("gpt_oss", "GptOssForCausalLM")),
    ("gpt2", named("gpt2", "GPT2LMHeadModel")),
    ("gptneox", named("gpt_neox", "GPTNeoXForCausalLM")),
    ("granite", named("granite", "GraniteForCausalLM")),
    ("granite_swa", named("granite_swa", "GraniteSWAForCausalLM")),
    ("granitehybrid", named("granitemoehybrid", "GraniteMoeHybridForCausalLM")),
    ("granitemoe", named("granitemoe", "GraniteMoeForCausalLM")),
    ("grok", named("grok-1", "GrokForCausalLM")),
    ("grovemoe", named("grove_moe", "GroveMoeForCausalLM")),
    ("hrm_text", named("hrm_text", "HrmTextForCausalLM")),
    ("hunyuan-dense", named("hunyuan_v1_dense", "HunYuanDenseV1ForCausalLM")),
    ("hunyuan-moe", named("hunyuan_v1_moe", "HunYuanMoEV1ForCausalLM")),
    ("hunyuan_vl", named("hunyuan_vl", "HunYuanVLForConditionalGeneration")),
    ("hy_v3", named("hy_v3", "HYV3ForCausalLM")),
    ("internlm2", named("internlm2", "InternLM2ForCausalLM")),
    ("jais", named("jais", "JAISLMHeadModel")),
    ("jais2", named("jais2", "Jais2ForCausalLM")),
    ("jamba", named("jamba", "JambaForCausalLM")),
    ("jina-bert-v2", named("bert", "JinaBertModel")),
    ("jina-bert-v3", named("xlm-roberta", "XLMRobertaModel")),
    ("kimi-linear", named("kimi_linear", "KimiLinearForCausalLM")),
    ("laguna", named("laguna", "LagunaForCausalLM")),
    ("lfm2", named("lfm2", "Lfm2ForCausalLM")),
    ("lfm2moe", named("lfm2_moe", "Lfm2MoeForCausalLM")),
    ("llama", named("llama", "LlamaForCausalLM")),
    ("llama-embed", named("llama_bidirec", "LlamaBidirectionalModel")),
    ("llama4", named("llama4", "Llama4ForCausalLM")),
    ("maincoder", named("maincoder", "MaincoderForCausalLM")),
    ("mamba", named("mamba", "MambaForCausalLM")),
    ("mamba2", named("mamba2", "Mamba2ForCausalLM")),
    ("maple", named("maple", "MapleForCausalLM")),
    ("mellum", named("mellum", "MellumForCausalLM")),
    ("mimo2", named("mimo_v2_flash", "MiMoV2FlashForCausalLM")),
    ("minicpm", named("minicpm", "MiniCPMForCausalLM")),
    ("minicpm3", named("minicpm3", "MiniCPM3ForCausalLM")),
    ("minimax-m2", named("minimax_m2", "MiniMaxM2ForCausalLM")),
    ("mistral3", named("ministral3", "Ministral3ForCausalLM")),
    ("mistral4", named("mistral4", "Mistral4ForCausalLM")),
    ("modern-bert", named("modernbert", "ModernBertModel")),
    ("mpt", named("mpt", "MptForCausalLM")),
    ("muse-glimmer", named("muse_glimmer", "MuseGlimmerForConditionalGeneration")),
    ("nanbeige", named("nanbeige", "NanbeigeForCausalLM")),
    ("nemotron", named("nemotron", "NemotronForCausalLM")),
    ("nemotron_h", named("nemotron_h", "NemotronHForCausalLM")),
    ("nemotron_h_moe", named("nemotron_h", "NemotronHForCausalLM")),
    ("neo-bert", named("neo_bert", "NeoBERT")),
    ("nomic-bert", named("nomic_bert", "NomicBertModel")),
    ("nomic-bert-moe", named("nomic_bert", "NomicBertModel")),
    ("olmo", named("olmo", "OlmoForCausalLM")),
    ("olmo2", named("olmo2", "Olmo2ForCausalLM")),
    ("olmoe", named("olmoe", "OlmoeForCausalLM")),
    ("openelm", named("openelm", "OpenELMForCausalLM")),
    ("orion", named("orion", "OrionForCausalLM")),
    ("paddleocr", named("paddleocr_vl", "PaddleOCRVLForConditionalGeneration")),
    ("pangu-embedded", named("pangu_embedded", "PanguEmbeddedForCausalLM")),
    ("phi2", named("phi", "PhiForCausalLM")),
    ("phi3", named("phi3", "Phi3ForCausalLM")),
    ("phimoe", named("phimoe", "PhimoeForCausalLM")),
    ("plamo", named("plamo", "PlamoForCausalLM")),
    ("plamo2", named("plamo2", "Plamo2ForCausalLM")),
    ("plamo3", named("plamo3", "Plamo3ForCausalLM")),
    ("plm", named("plm", "PLMForCausalLM")),
    ("qwen", named("qwen", "QWenLMHeadModel")),
    ("qwen2", named("qwen2", "Qwen2ForCausalLM")),
    ("qwen2moe", named("qwen2_moe", "Qwen2MoeForCausalLM")),
    ("qwen2vl", named("qwen2_vl", "Qwen2VLForConditionalGeneration")),
    ("qwen3", named("qwen3", "Qwen3ForCausalLM")),
    ("qwen35", named("qwen3_5", "Qwen3_5ForCausalLM")),
    ("qwen35moe", named("qwen3_5_moe", "Qwen3_5MoeForCausalLM")),
    ("qwen3moe", named("qwen3_moe", "Qwen3MoeForCausalLM")),
    ("qwen3next", named("qwen3_next", "Qwen3NextForCausalLM")),
    ("qwen3vl", named("qwen3_vl", "Qwen3VLForConditionalGeneration")),
    ("qwen3vlmoe", named("qwen3_vl_moe", "Qwen3VLMoeForConditionalGeneration")),
    ("refact", named("refact", "GPTRefactForCausalLM")),
    ("seed_oss", named("seed_oss", "SeedOssForCausalLM")),
    ("smallthinker", named("smallthinker", "SmallThinkerForCausalLM")),
    ("smollm3", named("smollm3", "SmolLM3ForCausalLM")),
    ("spark2_5", named("spark2_5", "Spark2_5ForCausalLM")),
    ("stablelm", named("stablelm", "StableLmForCausalLM")),
    ("starcoder", named("gpt_bigcode", "GPTBigCodeForCausalLM")),
    ("starcoder2", named("starcoder2", "Starcoder2ForCausalLM")),
    ("step35", named("step3p5", "Step3p5ForCausalLM")),
    ("talkie", named("talkie", "TalkieForCausalLM")),
    ("xverse", named("xverse", "XverseForCausalLM")),
];

const fn named(model_type: &'static str, class: &'static str) -> Named {
    Named { model_type, class }
}

/// The names of an architecture, or `None` of one that is not supported.
pub(super) fn known(architecture: &str) -> Option<Named> {
    TABLE.iter().find(|row| row.0 == architecture).map(|row| row.1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_supported_architecture_has_names() {
        let names = TABLE.iter().map(|row| row.0);
        assert!(names.eq(lapwing_kernels::model::supported()));
    }
}
