// Attention whose work-groups share a query head of a row, for GPUs: follows attention.cl in its text. A
// group has ITEMS items, a power of two: an item computes the score of one key, then sums values of one
// dimension. The order of each sum depends on the row's position only.

// Items that sum different keys of one dimension.
#define PARTS (ITEMS > VALUE_DIM ? ITEMS / VALUE_DIM : 1)
// Dimensions of an item.
#define EACH_DIMS ((VALUE_DIM + ITEMS - 1) / ITEMS)

#if KV_F16
#define GET_KV(i, p) vload_half(i, p)
#else
#define GET_KV(i, p) (p)[i]
#endif

#define SUM(to, from) shared[to] += shared[from];
#define LARGER(to, from) shared[to] = fmax(shared[to], shared[from]);

kernel GROUP_OF(ITEMS, 1) void attention_group(PLACE global const float *restrict q, int q_at, int q_stride,
                                               global const Kv *restrict kv,
                                               global float *restrict out, int out_at, int out_stride,
                                               PAGE_PARAMETERS, int rows, int heads, int window,
                                               float scale, float cap,
                                               global const float *restrict sinks, int has_sinks)
{
    LOCAL(float, query, KEY_DIM)
    LOCAL(float, weights, ITEMS)
    LOCAL(float, shared, ITEMS)
    const int item = get_local_id(0);
    const int head = get_group_id(0);
    const int row = get_group_id(1);
    const int kv_head = head / (heads / kv_heads);
    const int position = max(positions[positions_at + row], 0);
    const int first = window > 0 ? max(0, position - window + 1) : 0;
    const int part = item / VALUE_DIM;
    q += q_at + (size_t)row * q_stride + head * KEY_DIM;
    out += out_at + (size_t)row * out_stride + head * VALUE_DIM;
    for (int d = item; d < KEY_DIM; d += ITEMS)
        query[d] = q[d] * scale;

    float acc[EACH_DIMS];
    for (int i = 0; i < EACH_DIMS; i++)
        acc[i] = 0.0f;
    float largest = -INFINITY;
    float sum = 0.0f;
    // A round beyond the last key changes nothing.
    const int rounds = ROUNDS((position - first) / ITEMS + 1);
    for (int turn = 0; turn < rounds; turn++) {
        const int base = first + turn * ITEMS;
        const int key = base + item;
        const int count = min(ITEMS, position - base + 1);
        float score = -INFINITY;
        barrier(CLK_LOCAL_MEM_FENCE);
        if (key <= position) {
            global const Kv *keys = KEYS_OF(PAGE(key / PAGE_ROWS), kv_head) + key % PAGE_ROWS;
            score = 0.0f;
            _Pragma("unroll 32") for (int d = 0; d < KEY_DIM; d++)
                score = fma(query[d], GET_KV(d * PAGE_ROWS, keys), score);
            if (cap > 0.0f)
                score = cap * tanh(score / cap);
        }
        shared[item] = score;
        REDUCE(LARGER)
        const float largest_here = fmax(largest, shared[0]);
        const float kept = exp(largest - largest_here);
        largest = largest_here;
        weights[item] = key <= position ? exp(score - largest) : 0.0f;
        sum = fma(sum, kept, weights[item]);
        for (int i = 0; i < EACH_DIMS; i++)
            acc[i] *= kept;
        barrier(CLK_LOCAL_MEM_FENCE);
        if (part < PARTS) {
            _Pragma("unroll 8") for (int j = part; j < count; j += PARTS)
            {
                const int at = base + j;
                global const Kv *values = VALUES_OF(PAGE(at / PAGE_ROWS), kv_head) + at % PAGE_ROWS * VALUE_DIM;
                for (int i = 0; i < EACH_DIMS; i++) {
                    const int d = item % VALUE_DIM + i * ITEMS;
                    if (d < VALUE_DIM)
                        acc[i] = fma(weights[j], GET_KV(d, values), acc[i]);
                }
            }
        }
    }
    shared[item] = sum;
    REDUCE(SUM)
    float total = shared[0];
    // The score of a key without a value.
    if (has_sinks)
        total += exp(sinks[head] - largest);
    barrier(CLK_LOCAL_MEM_FENCE);
    for (int i = 0; i < EACH_DIMS; i++) {
        shared[item] = acc[i];
        barrier(CLK_LOCAL_MEM_FENCE);
        const int d = item + i * ITEMS;
        if (item < VALUE_DIM && d < VALUE_DIM && !IDLE) {
            float value = 0.0f;
            for (int p = 0; p < PARTS; p++)
                value += shared[p * VALUE_DIM + item];
            out[d] = value / total;
        }
        barrier(CLK_LOCAL_MEM_FENCE);
    }
}
