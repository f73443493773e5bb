// Prints llama.cpp's own results as JSON, for Lapwing's tests to compare with.
// README.md beside this file says what every subcommand and field means.

#include "ggml.h"
#include "llama.h"

#include <math.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { FIRST_TOP = 50, STEP_TOP = 10 };

struct options {
    bool flash_attention;
    enum ggml_type kv;
    bool repack;
    bool one_by_one;
    int batch;
    int micro_batch;
    int threads;
    int context;
    enum llama_pooling_type pooling;  // UNSPECIFIED: logits, no hidden states
};

struct text {
    char *bytes;
    size_t len;
};

struct texts {
    struct text *items;
    size_t count;
};

struct session {
    struct llama_model *model;
    struct llama_context *context;
    const struct llama_vocab *vocab;
    int vocab_size;
    struct options options;
};

static void die(const char *what, const char *which) {
    fprintf(stderr, "reference: %s: %s\n", what, which);
    exit(1);
}

static void *grow(void *old, size_t bytes) {
    void *block = realloc(old, bytes ? bytes : 1);
    if (!block) die("out of memory", "realloc");
    return block;
}

static struct text read_file(const char *path) {
    FILE *file = fopen(path, "rb");
    if (!file) die("cannot open", path);
    struct text text = {NULL, 0};
    size_t capacity = 1 << 16;
    text.bytes = grow(NULL, capacity);
    for (size_t got; (got = fread(text.bytes + text.len, 1, capacity - text.len, file)) > 0;) {
        text.len += got;
        if (text.len == capacity) text.bytes = grow(text.bytes, capacity *= 2);
    }
    fclose(file);
    return text;
}

// ---- JSON in: one array of strings ------------------------------------------------------------

static unsigned hex4(const char **at, const char *end) {
    unsigned value = 0;
    for (int i = 0; i < 4; i++) {
        if (*at >= end) die("JSON ends inside", "\\u");
        char c = *(*at)++;
        if (c >= '0' && c <= '9') value = value * 16 + (unsigned)(c - '0');
        else if (c >= 'a' && c <= 'f') value = value * 16 + (unsigned)(c - 'a' + 10);
        else if (c >= 'A' && c <= 'F') value = value * 16 + (unsigned)(c - 'A' + 10);
        else die("not a hex digit in", "\\u");
    }
    return value;
}

static void push_code_point(struct text *out, unsigned code) {
    if (code < 0x80) {
        out->bytes[out->len++] = (char)code;
        return;
    }
    int tail = code < 0x800 ? 1 : code < 0x10000 ? 2 : 3;
    static const unsigned lead[] = {0, 0xC0, 0xE0, 0xF0};
    out->bytes[out->len++] = (char)(lead[tail] | (code >> (6 * tail)));
    while (tail-- > 0) out->bytes[out->len++] = (char)(0x80 | ((code >> (6 * tail)) & 0x3F));
}

static void push_escape(struct text *out, const char **at, const char *end) {
    static const char names[] = "\"\\/bfnrt";
    static const char values[] = "\"\\/\b\f\n\r\t";
    if (*at >= end) die("JSON ends inside", "an escape");
    char c = *(*at)++;
    const char *name = c ? strchr(names, c) : NULL;
    if (name) {
        out->bytes[out->len++] = values[name - names];
        return;
    }
    if (c != 'u') die("unknown JSON escape in", "a string");
    unsigned code = hex4(at, end);
    if (code >= 0xD800 && code < 0xDC00) {
        if (end - *at < 6 || (*at)[0] != '\\' || (*at)[1] != 'u') die("lone surrogate in", "a string");
        *at += 2;
        code = 0x10000 + ((code - 0xD800) << 10) + (hex4(at, end) - 0xDC00);
    }
    push_code_point(out, code);
}

static struct text parse_string(const char **at, const char *end) {
    struct text out = {grow(NULL, (size_t)(end - *at) + 4), 0};
    while (*at < end && **at != '"') {
        char c = *(*at)++;
        if (c == '\\') push_escape(&out, at, end);
        else out.bytes[out.len++] = c;
    }
    if (*at >= end) die("JSON ends inside", "a string");
    (*at)++;
    out.bytes = grow(out.bytes, out.len + 1);
    out.bytes[out.len] = 0;
    return out;
}

static struct texts read_strings(const char *path) {
    struct text file = read_file(path);
    const char *at = file.bytes, *end = file.bytes + file.len;
    struct texts texts = {NULL, 0};
    while (at < end) {
        char c = *at++;
        if (c != '"') continue;
        texts.items = grow(texts.items, (texts.count + 1) * sizeof *texts.items);
        texts.items[texts.count++] = parse_string(&at, end);
    }
    free(file.bytes);
    return texts;
}

// ---- JSON out ---------------------------------------------------------------------------------

static void print_string(const char *bytes, size_t len) {
    putchar('"');
    for (size_t i = 0; i < len; i++) {
        unsigned char c = (unsigned char)bytes[i];
        if (c == '"' || c == '\\') printf("\\%c", c);
        else if (c < 0x20 || c == 0x7F) printf("\\u%04x", c);
        else putchar(c);
    }
    putchar('"');
}

static void print_ids(const llama_token *ids, int count) {
    putchar('[');
    for (int i = 0; i < count; i++) printf("%s%d", i ? "," : "", ids[i]);
    putchar(']');
}

static void print_row(const float *row, int count) {
    putchar('[');
    for (int i = 0; i < count; i++) printf("%s%.6g", i ? "," : "", (double)row[i]);
    putchar(']');
}

// ---- the model --------------------------------------------------------------------------------

static void log_errors(enum ggml_log_level level, const char *text, void *user) {
    (void)user;
    if (level == GGML_LOG_LEVEL_ERROR) fputs(text, stderr);
}

static struct session open_session(const char *path, struct options options, bool vocab_only) {
    struct session session = {.options = options};
    llama_log_set(log_errors, NULL);
    llama_backend_init();
    struct llama_model_params model_params = llama_model_default_params();
    model_params.vocab_only = vocab_only;
    model_params.n_gpu_layers = 0;
    model_params.use_extra_bufts = options.repack;
    session.model = llama_model_load_from_file(path, model_params);
    if (!session.model) die("llama.cpp cannot load", path);
    session.vocab = llama_model_get_vocab(session.model);
    session.vocab_size = llama_vocab_n_tokens(session.vocab);
    if (vocab_only) return session;

    struct llama_context_params params = llama_context_default_params();
    params.n_ctx = (uint32_t)options.context;
    params.n_batch = 2048;
    params.n_ubatch = (uint32_t)options.micro_batch;
    params.n_threads = params.n_threads_batch = options.threads;
    params.flash_attn_type = options.flash_attention ? LLAMA_FLASH_ATTN_TYPE_ENABLED : LLAMA_FLASH_ATTN_TYPE_DISABLED;
    params.type_k = params.type_v = options.kv;
    params.pooling_type = options.pooling;
    params.embeddings = options.pooling != LLAMA_POOLING_TYPE_UNSPECIFIED;
    session.context = llama_init_from_model(session.model, params);
    if (!session.context) die("llama.cpp cannot make a context for", path);
    return session;
}

static void close_session(struct session *session) {
    if (session->context) llama_free(session->context);
    llama_model_free(session->model);
    llama_backend_free();
}

static llama_token *tokenize(const struct session *session, struct text text, bool bos, bool special, int *count) {
    int room = (int)text.len + 16;
    llama_token *ids = grow(NULL, (size_t)room * sizeof *ids);
    *count = llama_tokenize(session->vocab, text.bytes, (int32_t)text.len, ids, room, bos, special);
    if (*count < 0) {
        room = -*count;
        ids = grow(ids, (size_t)room * sizeof *ids);
        *count = llama_tokenize(session->vocab, text.bytes, (int32_t)text.len, ids, room, bos, special);
    }
    return ids;
}

// Decodes ids at positions start.. and asks for the logits of every one (`all`) or only the last.
static void decode(struct session *session, const llama_token *ids, int start, int count, bool all) {
    struct llama_batch batch = llama_batch_init(count, 0, 1);
    for (int i = 0; i < count; i++) {
        batch.token[i] = ids[i];
        batch.pos[i] = start + i;
        batch.n_seq_id[i] = 1;
        batch.seq_id[i][0] = 0;
        batch.logits[i] = all || i + 1 == count;
    }
    batch.n_tokens = count;
    if (llama_decode(session->context, batch) != 0) die("llama_decode failed", "see the log");
    llama_batch_free(batch);
}

static void forget(struct session *session) { llama_memory_clear(llama_get_memory(session->context), true); }

// The ids of the `wanted` largest logits, largest first; of equals, the smallest id first.
static void top(const float *row, int vocab_size, int *best, int wanted) {
    int have = 0;
    for (int id = 0; id < vocab_size; id++) {
        if (have == wanted && row[id] <= row[best[have - 1]]) continue;
        int at = have < wanted ? have++ : have - 1;
        while (at > 0 && row[best[at - 1]] < row[id]) {
            best[at] = best[at - 1];
            at--;
        }
        best[at] = id;
    }
}

static void print_top(const float *row, int vocab_size, int wanted) {
    int best[FIRST_TOP];
    if (wanted > vocab_size) wanted = vocab_size;
    top(row, vocab_size, best, wanted);
    putchar('[');
    for (int i = 0; i < wanted; i++) printf("%s[%d,%.6g]", i ? "," : "", best[i], (double)row[best[i]]);
    putchar(']');
}

static double log_sum_exp(const float *row, int vocab_size) {
    float largest = row[0];
    for (int i = 1; i < vocab_size; i++) largest = row[i] > largest ? row[i] : largest;
    double sum = 0;
    for (int i = 0; i < vocab_size; i++) sum += exp((double)row[i] - largest);
    return largest + log(sum);
}

static void print_first(const float *row, int vocab_size) {
    double sum = 0, squares = 0;
    for (int i = 0; i < vocab_size; i++) sum += row[i];
    double mean = sum / vocab_size;
    for (int i = 0; i < vocab_size; i++) squares += (row[i] - mean) * (row[i] - mean);
    printf("\"mean\":%.7g,\"std\":%.7g,\"log_sum_exp\":%.7g,\"top\":", mean, sqrt(squares / vocab_size),
           log_sum_exp(row, vocab_size));
    print_top(row, vocab_size, FIRST_TOP);
}

// ---- subcommands ------------------------------------------------------------------------------

static int run_tokenize(const char *model, const char *path, struct options options) {
    struct session session = open_session(model, options, true);
    struct texts texts = read_strings(path);
    printf("{\"vocab_size\":%d,\"add_bos\":%s,\"bos\":%d,\"ids\":[\n", session.vocab_size,
           llama_vocab_get_add_bos(session.vocab) ? "true" : "false", llama_vocab_bos(session.vocab));
    for (size_t i = 0; i < texts.count; i++) {
        int count;
        printf("{\"special\":");
        llama_token *ids = tokenize(&session, texts.items[i], true, true, &count);
        print_ids(ids, count);
        free(ids);
        printf(",\"plain\":");
        ids = tokenize(&session, texts.items[i], true, false, &count);
        print_ids(ids, count);
        free(ids);
        printf("}%s\n", i + 1 < texts.count ? "," : "");
    }
    puts("]}");
    close_session(&session);
    return 0;
}

// The bytes of ids 0..600 and of every 211th after them, in hex, as a stream of generated ids would print them.
static int run_pieces(const char *model, struct options options) {
    struct session session = open_session(model, options, true);
    printf("{\"vocab_size\":%d,\"pieces\":[\n", session.vocab_size);
    for (int id = 0; id < session.vocab_size; id += id < 600 ? 1 : 211) {
        char bytes[4096];
        int len = llama_token_to_piece(session.vocab, id, bytes, sizeof bytes, 0, true);
        if (len < 0) die("a piece is longer than the buffer", model);
        printf("%s[%d,\"", id ? ",\n" : "", id);
        for (int i = 0; i < len; i++) printf("%02x", (unsigned char)bytes[i]);
        printf("\"]");
    }
    puts("]}");
    close_session(&session);
    return 0;
}

// Runs the prompt through in pieces of `options.batch` tokens; the last row's logits stay readable.
static void prefill(struct session *session, const llama_token *ids, int count) {
    for (int at = 0; at < count; at += session->options.batch) {
        int left = count - at;
        decode(session, ids + at, at, left < session->options.batch ? left : session->options.batch, false);
    }
}

static void generate_one(struct session *session, struct text prompt, int steps, bool full) {
    int count, eog_at = -1;
    llama_token *ids = tokenize(session, prompt, true, true, &count);
    llama_token *made = grow(NULL, (size_t)steps * sizeof *made);
    double *log_probs = grow(NULL, (size_t)steps * sizeof *log_probs);
    printf("{\"prompt\":");
    print_string(prompt.bytes, prompt.len);
    printf(",\n\"prompt_ids\":");
    print_ids(ids, count);
    forget(session);
    prefill(session, ids, count);
    printf(",\n\"steps\":[");
    for (int step = 0; step < steps; step++) {
        const float *row = llama_get_logits_ith(session->context, -1);
        int best[1];
        top(row, session->vocab_size, best, 1);
        made[step] = best[0];
        log_probs[step] = row[best[0]] - log_sum_exp(row, session->vocab_size);
        if (eog_at < 0 && llama_vocab_is_eog(session->vocab, best[0])) eog_at = step;
        printf("%s", step ? ",\n" : "");
        print_top(row, session->vocab_size, STEP_TOP);
        if (step + 1 < steps) decode(session, made + step, count + step, 1, false);
    }
    printf("],\n\"ids\":");
    print_ids(made, steps);
    printf(",\n\"logprobs\":[");
    for (int step = 0; step < steps; step++) printf("%s%.6g", step ? "," : "", log_probs[step]);
    printf("],\n\"end_of_generation_at\":");
    if (eog_at < 0) printf("null");
    else printf("%d", eog_at);
    forget(session);
    prefill(session, ids, count);
    const float *row = llama_get_logits_ith(session->context, -1);
    printf(",\n\"first\":{");
    print_first(row, session->vocab_size);
    if (full) {
        printf(",\"logits\":");
        print_row(row, session->vocab_size);
    }
    printf("}}");
    free(ids);
    free(made);
    free(log_probs);
}

static int run_generate(const char *model, const char *prompts, int steps, bool full, struct options options) {
    struct session session = open_session(model, options, false);
    struct texts texts = read_strings(prompts);
    printf("{\"vocab_size\":%d,\"prompts\":[\n", session.vocab_size);
    for (size_t i = 0; i < texts.count; i++) {
        generate_one(&session, texts.items[i], steps, full);
        printf("%s\n", i + 1 < texts.count ? "," : "");
    }
    puts("]}");
    close_session(&session);
    return 0;
}

static llama_token *parse_list(const char *list, int *count) {
    llama_token *ids = NULL;
    *count = 0;
    for (const char *at = list; *at;) {
        char *end;
        long id = strtol(at, &end, 10);
        if (end == at) die("not a list of numbers", list);
        ids = grow(ids, (size_t)(*count + 1) * sizeof *ids);
        ids[(*count)++] = (llama_token)id;
        at = *end == ',' ? end + 1 : end;
    }
    return ids;
}

static int run_logits(const char *model, const char *id_list, const char *position_list, struct options options) {
    int count, wanted;
    llama_token *ids = parse_list(id_list, &count);
    llama_token *positions = parse_list(position_list, &wanted);
    struct session session = open_session(model, options, false);
    printf("{\"vocab_size\":%d,\"rows\":[\n", session.vocab_size);
    if (!options.one_by_one) decode(&session, ids, 0, count, true);
    int next = 0;
    for (int i = 0; i < count && next < wanted; i++) {
        if (options.one_by_one) decode(&session, ids + i, i, 1, true);
        if (positions[next] != i) continue;
        print_row(llama_get_logits_ith(session.context, options.one_by_one ? 0 : i), session.vocab_size);
        printf("%s\n", ++next < wanted ? "," : "");
    }
    puts("]}");
    if (next < wanted) die("positions must rise and lie inside the ids", position_list);
    close_session(&session);
    free(ids);
    free(positions);
    return 0;
}

static enum llama_pooling_type pooling_of(const char *name) {
    static const char *const names[] = {"none", "mean", "cls", "last", "rank"};
    for (int i = 0; i < 5; i++) {
        if (!strcmp(names[i], name)) return (enum llama_pooling_type)i;
    }
    die("unknown pooling", name);
    return LLAMA_POOLING_TYPE_UNSPECIFIED;
}

static int run_hidden(const char *model, const char *id_list, const char *pooling, struct options options) {
    int count;
    llama_token *ids = parse_list(id_list, &count);
    options.pooling = pooling_of(pooling);
    struct session session = open_session(model, options, false);
    bool each = options.pooling == LLAMA_POOLING_TYPE_NONE;
    int width = llama_model_n_embd(session.model);
    if (options.pooling == LLAMA_POOLING_TYPE_RANK) width = (int)llama_model_n_cls_out(session.model);
    decode(&session, ids, 0, count, true);
    printf("{\"width\":%d,\"rows\":[\n", width);
    for (int i = 0; i < (each ? count : 1); i++) {
        print_row(each ? llama_get_embeddings_ith(session.context, i) : llama_get_embeddings_seq(session.context, 0), width);
        printf("%s\n", each && i + 1 < count ? "," : "");
    }
    puts("]}");
    close_session(&session);
    free(ids);
    return 0;
}

static int run_perplexity(const char *model, const char *path, int window, struct options options) {
    struct session session = open_session(model, options, false);
    struct text text = read_file(path);
    int count, windows, first = window / 2, scored = 0;
    llama_token *ids = tokenize(&session, text, true, false, &count);
    windows = count / window;
    double total = 0;
    printf("{\"tokens\":%d,\"window\":%d,\"windows\":%d,\"window_mean_nll\":[", count, window, windows);
    for (int w = 0; w < windows; w++) {
        llama_token *part = ids + (size_t)w * (size_t)window;
        llama_token kept = part[0];
        if (llama_vocab_get_add_bos(session.vocab)) part[0] = llama_vocab_bos(session.vocab);
        forget(&session);
        decode(&session, part, 0, window, true);
        part[0] = kept;
        double sum = 0;
        for (int i = first; i + 1 < window; i++) {
            const float *row = llama_get_logits_ith(session.context, i);
            sum += log_sum_exp(row, session.vocab_size) - row[part[i + 1]];
        }
        printf("%s%.7g", w ? "," : "", sum / (window - 1 - first));
        total += sum;
        scored += window - 1 - first;
    }
    printf("],\"scored\":%d,\"perplexity\":%.8g}\n", scored, exp(total / scored));
    close_session(&session);
    free(ids);
    free(text.bytes);
    return 0;
}

static int usage(void) {
    fputs("usage: reference [options] tokenize MODEL STRINGS.json\n"
          "       reference [options] pieces MODEL\n"
          "       reference [options] generate MODEL PROMPTS.json STEPS [full]\n"
          "       reference [options] logits MODEL ID,ID,... POSITION,POSITION,...\n"
          "       reference [options] hidden MODEL ID,ID,... none|mean|cls|last|rank\n"
          "       reference [options] perplexity MODEL TEXT WINDOW\n"
          "options: --no-flash --kv-f32 --kv-bf16 --no-repack --one-by-one --batch N --micro-batch N --threads N\n"
          "         --context N\n",
          stderr);
    return 2;
}

int main(int argc, char **argv) {
    struct options options = {.flash_attention = true, .kv = GGML_TYPE_F16, .repack = true, .batch = 2048, .micro_batch = 512,
                              .threads = 2, .context = 2048, .pooling = LLAMA_POOLING_TYPE_UNSPECIFIED};
    int at = 1;
    for (; at < argc && strncmp(argv[at], "--", 2) == 0; at++) {
        const char *name = argv[at];
        if (!strcmp(name, "--no-flash")) options.flash_attention = false;
        else if (!strcmp(name, "--kv-f32")) options.kv = GGML_TYPE_F32;
        else if (!strcmp(name, "--kv-bf16")) options.kv = GGML_TYPE_BF16;
        else if (!strcmp(name, "--no-repack")) options.repack = false;
        else if (!strcmp(name, "--one-by-one")) options.one_by_one = true;
        else if (at + 1 >= argc) return usage();
        else if (!strcmp(name, "--batch")) options.batch = atoi(argv[++at]);
        else if (!strcmp(name, "--micro-batch")) options.micro_batch = atoi(argv[++at]);
        else if (!strcmp(name, "--threads")) options.threads = atoi(argv[++at]);
        else if (!strcmp(name, "--context")) options.context = atoi(argv[++at]);
        else return usage();
    }
    argv += at;
    argc -= at;
    if (options.batch < 1 || options.micro_batch < 1 || options.threads < 1 || argc < 2) return usage();
    if (!strcmp(argv[0], "pieces") && argc == 2) return run_pieces(argv[1], options);
    if (!strcmp(argv[0], "tokenize") && argc == 3) return run_tokenize(argv[1], argv[2], options);
    if (!strcmp(argv[0], "generate") && (argc == 4 || argc == 5)) {
        return run_generate(argv[1], argv[2], atoi(argv[3]), argc == 5, options);
    }
    if (!strcmp(argv[0], "logits") && argc == 4) return run_logits(argv[1], argv[2], argv[3], options);
    if (!strcmp(argv[0], "hidden") && argc == 4) return run_hidden(argv[1], argv[2], argv[3], options);
    if (!strcmp(argv[0], "perplexity") && argc == 4) return run_perplexity(argv[1], argv[2], atoi(argv[3]), options);
    return usage();
}
