// Prints the greedy continuation of a text by an llama.cpp of May 2023, as JSON.
//
// usage: legacy MODEL TEXT COUNT

#include "llama.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

enum { PROMPT_MAX = 256, THREADS = 1 };

static int best_of(const float *logits, int count) {
    int best = 0;
    for (int i = 1; i < count; i++) {
        if (logits[i] > logits[best]) {
            best = i;
        }
    }
    return best;
}

static double log_sum_exp(const float *logits, int count, int best) {
    double sum = 0;
    for (int i = 0; i < count; i++) {
        sum += exp((double)logits[i] - logits[best]);
    }
    return logits[best] + log(sum);
}

int main(int argc, char **argv) {
    if (argc != 4) {
        fprintf(stderr, "usage: legacy MODEL TEXT COUNT\n");
        return 2;
    }
    struct llama_context_params params = llama_context_default_params();
    params.n_ctx = 512;
    struct llama_context *context = llama_init_from_file(argv[1], params);
    if (!context) {
        return 1;
    }
    llama_token prompt[PROMPT_MAX];
    int length = llama_tokenize(context, argv[2], prompt, PROMPT_MAX, 1);
    int vocab = llama_n_vocab(context), count = atoi(argv[3]);
    if (length <= 0 || llama_eval(context, prompt, length, 0, THREADS)) {
        return 1;
    }
    printf("{\"prompt_ids\":[");
    for (int i = 0; i < length; i++) {
        printf("%s%d", i ? "," : "", prompt[i]);
    }
    printf("],\"steps\":[");
    for (int step = 0; step < count; step++) {
        float *logits = llama_get_logits(context);
        int best = best_of(logits, vocab);
        double logprob = logits[best] - log_sum_exp(logits, vocab, best);
        float best_logit = logits[best];
        logits[best] = -INFINITY;
        double gap = best_logit - logits[best_of(logits, vocab)];
        printf("%s[%d,%.6g,%.6g]", step ? "," : "", best, logprob, gap);
        llama_token token = best;
        if (llama_eval(context, &token, 1, length + step, THREADS)) {
            return 1;
        }
    }
    printf("]}\n");
    llama_free(context);
    return 0;
}
