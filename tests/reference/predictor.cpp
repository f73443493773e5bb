// Prints what llama.cpp's draft of a model's own predictor (multi-token prediction) computes, as JSON.
// README.md beside this file says what the fields mean.
//
// usage: predictor MODEL IDS, with the ids as numbers between commas

#include "common.h"
#include "llama-ext.h"
#include "llama.h"

#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

using Row = std::vector<float>;

static void fail(const char *what) {
    fprintf(stderr, "predictor: %s\n", what);
    exit(1);
}

static void print_rows(const char *name, const std::vector<Row> &rows, bool last) {
    printf("\"%s\":[\n", name);
    for (size_t i = 0; i < rows.size(); i++) {
        for (size_t j = 0; j < rows[i].size(); j++) printf("%s%.6g", j ? "," : "[", rows[i][j]);
        printf("]%s\n", i + 1 < rows.size() ? "," : "");
    }
    printf("]%s", last ? "" : ",\n");
}

static llama_context *context(llama_model *model, llama_context_type type) {
    llama_context_params params = llama_context_default_params();
    params.n_ctx = params.n_batch = params.n_ubatch = 256;
    params.n_threads = params.n_threads_batch = 1;
    params.flash_attn_type = LLAMA_FLASH_ATTN_TYPE_DISABLED;
    params.type_k = params.type_v = GGML_TYPE_F32;
    params.ctx_type = type;
    llama_context *made = llama_init_from_model(model, params);
    if (!made) fail("no context");
    return made;
}

static Row copied(const float *row, int count) {
    if (!row) fail("no row");
    return Row(row, row + count);
}

int main(int argc, char **argv) {
    if (argc != 3) fail("usage: predictor MODEL IDS");
    llama_log_set([](ggml_log_level level, const char *text, void *) {
        if (level == GGML_LOG_LEVEL_ERROR) fputs(text, stderr);
    }, nullptr);
    std::vector<llama_token> ids;
    for (char *at = argv[2]; *at; at += *at == ',') ids.push_back((llama_token)strtol(at, &at, 10));
    llama_model_params params = llama_model_default_params();
    params.load_mtp = true;
    params.use_extra_bufts = false;
    llama_model *model = llama_model_load_from_file(argv[1], params);
    if (!model) fail("cannot load the model");
    const int width = llama_model_n_embd_out(model), vocabulary = llama_vocab_n_tokens(llama_model_get_vocab(model));

    llama_context *target = context(model, LLAMA_CONTEXT_TYPE_DEFAULT);
    llama_set_embeddings_nextn(target, true, false);
    common_batch batch(target);
    for (size_t at = 0; at < ids.size(); at++) batch.add(ids[at], (llama_pos)at, 0, true);
    if (llama_process(target, LLAMA_PROCESS_TYPE_DECODE, batch.get()) != 0) fail("the model fails");
    std::vector<Row> hidden, rows, then;
    for (size_t at = 0; at < ids.size(); at++) hidden.push_back(copied(llama_get_embeddings_nextn_ith(target, (int)at), width));

    // The row at position p has the token there and the hidden states of the row before it.
    llama_context *head = context(model, LLAMA_CONTEXT_TYPE_MTP);
    llama_set_embeddings_nextn(head, true, true);
    common_batch given(head);
    for (size_t at = 1; at < ids.size(); at++) {
        int index = given.add(ids[at], (llama_pos)at, 0, true);
        given.set_embd(index, {hidden[at - 1].data(), 1, (size_t)width});
    }
    if (llama_process(head, LLAMA_PROCESS_TYPE_DECODE, given.get()) != 0) fail("the predictor fails");
    for (size_t at = 0; at + 1 < ids.size(); at++) rows.push_back(copied(llama_get_logits_ith(head, (int)at), vocabulary));

    // A second token, behind the first id: the predictor's own row takes the place of the model's.
    Row own = copied(llama_get_embeddings_nextn_ith(head, (int)ids.size() - 2), width);
    given.clear();
    int index = given.add(ids[0], (llama_pos)ids.size(), 0, true);
    given.set_embd(index, {own.data(), 1, (size_t)width});
    if (llama_process(head, LLAMA_PROCESS_TYPE_DECODE, given.get()) != 0) fail("the predictor fails");
    then.push_back(copied(llama_get_logits_ith(head, 0), vocabulary));

    printf("{");
    print_rows("rows", rows, false);
    print_rows("then", then, true);
    printf("}\n");
    llama_free(head);
    llama_free(target);
    llama_model_free(model);
    return 0;
}
