// Causal convolutions over a few rows. An item computes CHUNK columns: many where an item is a vector, one where its neighbours in
// a work-group read the next ones. A state is the `count` - 1 last rows of `width` values, oldest first.

// A row's columns from i on: of the row so many before it, in the span or in the state.
#define BEFORE(back)                                                                                \
    ((back) <= in_span ? ROW(x) - (size_t)(back)*x_stride : old + (size_t)(count - 1 + in_span - (back)) * width)

// The sum of products in the order of the rows, those before the sequence left out, then the bias.
#define CONVOLVE(TYPE, LOAD)                                                                        \
    TYPE sum = 0.0f;                                                                                \
    for (int back = earlier; back >= 0; back--)                                                     \
        sum = fma(LOAD(BEFORE(back) + i), LOAD(taps + (size_t)(count - 1 - back) * width + i), sum); \
    if (has_bias)                                                                                   \
        sum += LOAD(bias + i);                                                                      \
    if (is_silu)                                                                                    \
        sum = SILU(sum);

#define ONE(p) (*(p))
#define MANY(p) vload16(0, p)

// `taps`: a row of weights for each of `count` rows, that of the row itself last.
kernel void short_conv(PLACE PARAMETERS(x), global const float *restrict taps, global const float *restrict bias,
                       global const float *states, OUT_PARAMETERS, global const int *row_spans, int row_spans_at,
                       SPAN_PARAMETERS, int width, int count, int has_bias, int is_silu)
{
    const int row = get_global_id(1);
    if (row >= rows)
        return;
    const int span = clamp(row_spans[row_spans_at + row], 0, spans - 1);
    const int in_span = clamp(row - FIRST_ROW, 0, row);
    const int from = FROM;
    global const float *old = states + (size_t)max(from, 0) * (count - 1) * width;
    // Without a state there are only the rows of the span.
    const int earlier = min(from < 0 ? in_span : START + in_span, count - 1);
    const int end = min(width, (int)(get_global_id(0) + 1) * CHUNK);
    int i = get_global_id(0) * CHUNK;
    for (; i + 16 <= end; i += 16) {
        CONVOLVE(float16, MANY)
        vstore16(sum, 0, ROW(out) + i);
    }
    for (; i < end; i++) {
        CONVOLVE(float, ONE)
        ROW(out)[i] = sum;
    }
}

// Makes states of the `kept` last rows wherever a span keeps one. Where a sequence has fewer rows, those before it are 0.
kernel void keep_rows(PLACE PARAMETERS(x), global float *states, SPAN_PARAMETERS, int width, int kept)
{
    const int span = get_global_id(1);
    if (span >= spans)
        return;
    const int first = FIRST_ROW;
    const int count = ROWS_OF_SPAN;
    const int from = FROM;
    const int keeps = KEEPS;
    const int end = min(width, (int)(get_global_id(0) + 1) * CHUNK);
    global const float *old = states + (size_t)max(from, 0) * kept * width;
    // Last the place of the end, which may be the one with the state before the rows: rows move to earlier ones, oldest first.
    for (int at = 0; at <= keeps; at++) {
        const int after = at < keeps ? clamp(KEPT_AFTER(at), 0, count) : count;
        global float *to = states + (size_t)(at < keeps ? KEPT_AT(at) : TO) * kept * width;
        for (int j = 0; j < kept; j++) {
            const int in_span = after - kept + j;
            const int row = max(first + in_span, 0);
            const bool is_old = in_span < 0;
            for (int i = get_global_id(0) * CHUNK; i < end; i++) {
                const float before = is_old && from >= 0 ? old[(size_t)(after + j) * width + i] : 0.0f;
                to[(size_t)j * width + i] = is_old ? before : ROW(x)[i];
            }
        }
    }
}
