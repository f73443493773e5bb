// Prints the tensors that llama.cpp asks for when it knows only the keys of a model, those that a file may lack too.
//
// usage: shapes KEYS.gguf [SAVED.gguf]
//
// One JSON array of [name, [columns, rows, ...]] per tensor. SAVED.gguf is the model as llama.cpp's own saver writes it,
// with all the keys that it knows; the values of its tensors are zero.

#include "ggml-backend.h"
#include "gguf.h"
#include "llama.h"

#include <stdbool.h>
#include <stdio.h>

static void log_errors(enum ggml_log_level level, const char *text, void *user) {
    (void)user;
    if (level == GGML_LOG_LEVEL_ERROR) fputs(text, stderr);
}

static void print_shape(struct ggml_tensor *tensor, void *is_first) {
    printf("%s[\"%s\",[", *(bool *)is_first ? "" : ",\n", tensor->name);
    for (int i = 0; i < GGML_MAX_DIMS; i++) printf("%s%lld", i ? "," : "", (long long)tensor->ne[i]);
    printf("]]");
    *(bool *)is_first = false;
    ggml_backend_tensor_memset(tensor, 0, 0, ggml_nbytes(tensor));
}

int main(int argc, char **argv) {
    if (argc != 2 && argc != 3) {
        fputs("usage: shapes KEYS.gguf [SAVED.gguf]\n", stderr);
        return 2;
    }
    llama_log_set(log_errors, NULL);
    llama_backend_init();
    struct gguf_init_params params = {.no_alloc = true, .ctx = NULL};
    struct gguf_context *keys = gguf_init_from_file(argv[1], params);
    if (!keys) {
        fprintf(stderr, "shapes: cannot read: %s\n", argv[1]);
        return 1;
    }
    bool is_first = true;
    printf("[");
    struct llama_model *model = llama_model_init_from_user(keys, print_shape, &is_first, llama_model_default_params());
    if (!model) {
        fprintf(stderr, "shapes: llama.cpp makes no model of: %s\n", argv[1]);
        return 1;
    }
    puts("]");
    if (argc == 3) llama_model_save_to_file(model, argv[2]);
    llama_model_free(model);
    gguf_free(keys);
    llama_backend_free();
    return 0;
}
