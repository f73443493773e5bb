// Attention whose keys and values are added up in a state. Compiled for KEYS values of a key. The state of a head is
// [blocks][KEYS][BLOCK]: a line has a value of each of BLOCK columns.

#define BLOCK 16
#define BLOCKS ((values + BLOCK - 1) / BLOCK)

#define STATE_PARAMETERS                                                                            \
    PARAMETERS(q), PARAMETERS(k), PARAMETERS(v), PARAMETERS(keep), PARAMETERS(rate),                \
        global const float *skip, global const float *decays, global float *states, OUT_PARAMETERS, \
        SPAN_PARAMETERS, int heads, int key_heads, int values, int flags, float scale

// Bits of `flags`: the delta rule, heads have keys by turns, `skip` is used, each value of a key has its own factor, and `decays` are
// used, [heads][blocks][KEYS][columns of the block]: logarithms of what stays in a unit of time. Then `keep` has the time of each value,
// and `rate` and `skip` have a number for each.
#define IS_DELTA (flags & 1)
#define KEY_HEAD ((flags & 2) ? head % key_heads : head / (heads / key_heads))
#define HAS_SKIP (flags & 4)
#define KEEP_STEP ((flags & 8) ? 1 : 0)
#define HAS_DECAYS (flags & 16)
#define FACTORS_OF_HEAD ((flags & 8) ? KEYS : RATES_OF_HEAD)
#define RATES_OF_HEAD (HAS_DECAYS ? values : 1)
// Where the first column of the block is in rows of values, and in `rate` and `skip`.
#define VALUE_AT (head * values + block * BLOCK)
#define RATE_AT (HAS_DECAYS ? VALUE_AT : head)
// The decays of a line of the block, one for each of its columns.
#define DECAYS(line, columns) (decays + VALUE_AT * KEYS + (line) * (columns))

// The lines of a block of the state at a place.
#define LINES_AT(place) (states + ((size_t)(place)*heads * BLOCKS + head * BLOCKS + block) * (KEYS * BLOCK))

// Sums of lines that are added up apart, so that additions need not wait for each other.
#define SUMS 4

// What is left of a line of the state.
#define FADED(line) (vload16(line, lines) * STAYS(line))
#define STAYS(line)                                                                                 \
    (HAS_DECAYS ? exp(times * of_columns(DECAYS(line, columns), columns)) : (float16)(factors[(line)*KEEP_STEP]))

// Numbers of the columns of a block, and zeros for columns that it lacks.
inline float16 of_columns(global const float *x, int columns)
{
    float own[BLOCK];
    for (int i = 0; i < BLOCK; i++)
        own[i] = i < columns ? x[i] : 0.0f;
    return vload16(0, own);
}

// An item computes a block of columns of a head, for the rows of a span one after another. It changes its part of the state in
// place.
kernel void linear_attention(PLACE STATE_PARAMETERS)
{
    const int head = get_global_id(0) / BLOCKS;
    const int block = get_global_id(0) % BLOCKS;
    const int span = get_global_id(1);
    if (head >= heads || span >= spans)
        return;
    const int columns = min(values - block * BLOCK, BLOCK);
    const int first = FIRST_ROW;
    const int count = ROWS_OF_SPAN;
    const int from = FROM;
    global float *lines = LINES_AT(TO);
    global const float *old = LINES_AT(max(from, 0));
    for (int i = 0; i < KEYS && (from < 0 || from != TO); i++)
        vstore16(from < 0 ? (float16)(0.0f) : vload16(i, old), i, lines);
    int kept = 0;
    for (int done = 0; done < count; done++) {
        const int row = first + done;
        global const float *key = ROW(k) + KEY_HEAD * KEYS;
        global const float *query = ROW(q) + KEY_HEAD * KEYS;
        global const float *factors = ROW(keep) + head * FACTORS_OF_HEAD;
        const float16 value = of_columns(ROW(v) + VALUE_AT, columns);
        const float16 times = HAS_DECAYS ? of_columns(ROW(keep) + VALUE_AT, columns) : (float16)(0.0f);
        const float16 rates =
            HAS_DECAYS ? of_columns(ROW(rate) + RATE_AT, columns) : (float16)(ROW(rate)[RATE_AT]);
        float16 known = 0.0f;
        if (IS_DELTA) {
            float16 sums[SUMS];
            for (int i = 0; i < SUMS; i++)
                sums[i] = 0.0f;
            for (int i = 0; i < KEYS; i += SUMS) {
                UNROLL for (int s = 0; s < SUMS; s++)
                {
                    if (i + s < KEYS)
                        sums[s] = fma(FADED(i + s), (float16)(key[i + s]), sums[s]);
                }
            }
            known = (sums[0] + sums[1]) + (sums[2] + sums[3]);
        }
        const float16 added = (value - known) * rates;
        float16 sums[SUMS];
        for (int i = 0; i < SUMS; i++)
            sums[i] = 0.0f;
        for (int i = 0; i < KEYS; i += SUMS) {
            UNROLL for (int s = 0; s < SUMS; s++)
            {
                if (i + s < KEYS) {
                    const float16 line = fma((float16)(key[i + s]), added, FADED(i + s));
                    vstore16(line, i + s, lines);
                    sums[s] = fma(line, (float16)(query[i + s]), sums[s]);
                }
            }
        }
        const float16 read = ((sums[0] + sums[1]) + (sums[2] + sums[3])) * scale;
        float16 skips = 0.0f;
        if (HAS_SKIP)
            skips = HAS_DECAYS ? of_columns(skip + RATE_AT, columns) : (float16)(skip[RATE_AT]);
        float own[BLOCK];
        vstore16(HAS_SKIP ? fma(value, skips, read) : read, 0, own);
        for (int i = 0; i < columns; i++)
            ROW(out)[VALUE_AT + i] = own[i];
        for (; kept < KEEPS && KEPT_AFTER(kept) <= done + 1; kept++) {
            global float *to = LINES_AT(KEPT_AT(kept));
            for (int i = 0; i < KEYS; i++)
                vstore16(vload16(i, lines), i, to);
        }
    }
}
