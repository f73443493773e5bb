// Paged KV cache (its order is that of KvStore) and attention. Compiled for KEY_DIM and VALUE_DIM values of a head's key and value,
// PAGE_ROWS and a storage type; KEY_LANES divides PAGE_ROWS, and DIM_LANES divides VALUE_DIM.

#if KV_F16
typedef half Kv;
#else
typedef float Kv;
#endif

#define KEYS_LEN (KEY_DIM * PAGE_ROWS)
#define VALUES_LEN (VALUE_DIM * PAGE_ROWS)
#define KEY_VECTORS (PAGE_ROWS / KEY_LANES)
#define DIM_VECTORS (VALUE_DIM / DIM_LANES)

#if KEY_LANES == 1
typedef float Keys;
#define KEYS_TO(x, i, to) (to)[i] = x
#else
typedef CAT(float, KEY_LANES) Keys;
#define KEYS_TO(x, i, to) CAT(vstore, KEY_LANES)(x, i, to)
#endif
#if DIM_LANES == 1
typedef float Dims;
#define DIMS_TO(x, i, to) (to)[i] = x
#else
typedef CAT(float, DIM_LANES) Dims;
#define DIMS_TO(x, i, to) CAT(vstore, DIM_LANES)(x, i, to)
#endif

// LOAD_KEYS(i, p) and LOAD_DIMS(i, p): vector i from p on.
#if KV_F16
#if KEY_LANES == 1
#define LOAD_KEYS(i, p) vload_half(i, p)
#else
#define LOAD_KEYS(i, p) CAT(vload_half, KEY_LANES)(i, p)
#endif
#if DIM_LANES == 1
#define LOAD_DIMS(i, p) vload_half(i, p)
#else
#define LOAD_DIMS(i, p) CAT(vload_half, DIM_LANES)(i, p)
#endif
#define PUT_KV(x, i, p) vstore_half_rte(x, i, p)
#else
#if KEY_LANES == 1
#define LOAD_KEYS(i, p) (p)[i]
#else
#define LOAD_KEYS(i, p) CAT(vload, KEY_LANES)(i, p)
#endif
#if DIM_LANES == 1
#define LOAD_DIMS(i, p) (p)[i]
#else
#define LOAD_DIMS(i, p) CAT(vload, DIM_LANES)(i, p)
#endif
#define PUT_KV(x, i, p) (p)[i] = x
#endif

#define PAGE_PARAMETERS                                                                             \
    global const int *positions, global const int *row_pages, global const int *pages,              \
        int positions_at, int row_pages_at, int pages_at, int pages_len, int page_limit,            \
        int kv_heads

// The page that holds a row's position `page * PAGE_ROWS`, and the keys and values of a head in a page. Numbers out of range are
// replaced, so that no access leaves a buffer.
#define PAGE(page)                                                                                  \
    (kv                                                                                             \
     + (size_t)clamp(                                                                               \
           pages[pages_at + clamp(row_pages[row_pages_at + row] + (page), 0, pages_len - 1)], 0,    \
           page_limit - 1)                                                                          \
         * (kv_heads * (KEYS_LEN + VALUES_LEN)))
#define KEYS_OF(page, head) ((page) + (head) * KEYS_LEN)
#define VALUES_OF(page, head) ((page) + kv_heads * KEYS_LEN + (head) * VALUES_LEN)

// An item writes every get_global_size(0)-th key and value of one head and row.
kernel void kv_write(PLACE global const float *k, int k_at, int k_stride, global const float *v, int v_at,
                     int v_stride, global Kv *kv, PAGE_PARAMETERS, int rows)
{
    const int head = get_global_id(1);
    const int row = get_global_id(2);
    if (head >= kv_heads || row >= rows)
        return;
    const int position = max(positions[positions_at + row], 0);
    const int at = position % PAGE_ROWS;
    global Kv *page = PAGE(position / PAGE_ROWS);
    global Kv *keys = KEYS_OF(page, head);
    global Kv *values = VALUES_OF(page, head);
    k += k_at + (size_t)row * k_stride + head * KEY_DIM;
    v += v_at + (size_t)row * v_stride + head * VALUE_DIM;
    for (int d = get_global_id(0); d < KEY_DIM; d += get_global_size(0))
        PUT_KV(k[d], d * PAGE_ROWS + at, keys);
    for (int d = get_global_id(0); d < VALUE_DIM; d += get_global_size(0))
        PUT_KV(v[d], at * VALUE_DIM + d, values);
}

// Rotates the query heads of a row, and writes its rotated keys and its values: an item does every
// get_global_size(0)-th dimension of one head, of the queries', then the keys', then the values'.
kernel void rope_kv(PLACE global const float *q, int q_at, int q_stride, global const float *angles,
                    int angles_at, int angles_stride, global float *out, int out_at, int out_stride,
                    int heads, int pairs, int is_adjacent, global const float *k, int k_at, int k_stride,
                    global const float *v, int v_at, int v_stride, global Kv *kv, PAGE_PARAMETERS,
                    int rows)
{
    const int row = get_global_id(2);
    int head = get_global_id(1);
    if (head >= heads + 2 * kv_heads || row >= rows)
        return;
    const int position = max(positions[positions_at + row], 0);
    const bool is_query = head < heads;
    const bool is_value = head >= heads + kv_heads;
    head -= is_value ? heads + kv_heads : is_query ? 0 : heads;
    const int at = position % PAGE_ROWS;
    global Kv *page = PAGE(position / PAGE_ROWS);
    if (is_value) {
        global Kv *values = VALUES_OF(page, head) + at * VALUE_DIM;
        v += v_at + (size_t)row * v_stride + head * VALUE_DIM;
        for (int d = get_global_id(0); d < VALUE_DIM; d += get_global_size(0))
            PUT_KV(v[d], d, values);
        return;
    }
    global Kv *keys = KEYS_OF(page, is_query ? 0 : head) + at;
    global const float *from = is_query ? q + q_at + (size_t)row * q_stride
                                        : k + k_at + (size_t)row * k_stride;
    from += head * KEY_DIM;
    out += out_at + (size_t)row * out_stride + head * KEY_DIM;
    angles += angles_at + (size_t)row * angles_stride;
    for (int d = get_global_id(0); d < KEY_DIM - pairs; d += get_global_size(0)) {
        // A pair, or one value that is not rotated.
        const bool is_pair = d < pairs;
        const int first = !is_pair ? d + pairs : is_adjacent ? 2 * d : d;
        const int second = !is_pair ? first : first + (is_adjacent ? 1 : pairs);
        float x = from[first];
        float y = from[second];
        if (is_pair) {
            const float cosine = angles[d];
            const float sine = angles[pairs + d];
            const float turned = fma(x, cosine, -(y * sine));
            y = fma(x, sine, y * cosine);
            x = turned;
        }
        if (is_query) {
            out[first] = x;
            out[second] = y;
        } else {
            PUT_KV(x, first * PAGE_ROWS, keys);
            PUT_KV(y, second * PAGE_ROWS, keys);
        }
    }
}

// An item computes one query head of a row: page by page with the softmax of the keys so far.
kernel void attention(PLACE global const float *q, int q_at, int q_stride, global const Kv *kv,
                      global float *out, int out_at, int out_stride, PAGE_PARAMETERS, int rows,
                      int heads, int window, float scale, float cap, global const float *sinks,
                      int has_sinks)
{
    const int head = get_global_id(0);
    const int row = get_global_id(1);
    if (head >= heads || row >= rows)
        return;
    const int kv_head = head / (heads / kv_heads);
    const int position = max(positions[positions_at + row], 0);
    const int first = window > 0 ? max(0, position - window + 1) : 0;
    q += q_at + (size_t)row * q_stride + head * KEY_DIM;
    out += out_at + (size_t)row * out_stride + head * VALUE_DIM;

    Dims acc[DIM_VECTORS];
    for (int i = 0; i < DIM_VECTORS; i++)
        acc[i] = 0.0f;
    float largest = -INFINITY;
    float sum = 0.0f;
    for (int number = first / PAGE_ROWS; number <= position / PAGE_ROWS; number++) {
        const int from = max(first - number * PAGE_ROWS, 0);
        const int to = min(position - number * PAGE_ROWS, PAGE_ROWS - 1);
        global const Kv *page = PAGE(number);
        global const Kv *keys = KEYS_OF(page, kv_head);
        global const Kv *values = VALUES_OF(page, kv_head);

        Keys score[KEY_VECTORS];
        for (int i = 0; i < KEY_VECTORS; i++)
            score[i] = 0.0f;
        for (int d = 0; d < KEY_DIM; d++)
            for (int i = 0; i < KEY_VECTORS; i++)
                score[i] = fma((Keys)(q[d]), LOAD_KEYS(d * KEY_VECTORS + i, keys), score[i]);
        float weights[PAGE_ROWS];
        for (int i = 0; i < KEY_VECTORS; i++) {
            score[i] *= scale;
            if (cap > 0.0f)
                score[i] = cap * tanh(score[i] / cap);
            KEYS_TO(score[i], i, weights);
        }
        float largest_here = largest;
        for (int j = from; j <= to; j++)
            largest_here = fmax(largest_here, weights[j]);
        for (int i = 0; i < KEY_VECTORS; i++)
            KEYS_TO(exp(score[i] - largest_here), i, weights);
        const float kept = exp(largest - largest_here);
        largest = largest_here;
        sum *= kept;
        for (int i = 0; i < DIM_VECTORS; i++)
            acc[i] *= kept;
        for (int j = from; j <= to; j++) {
            sum += weights[j];
            for (int i = 0; i < DIM_VECTORS; i++)
                acc[i] = fma((Dims)(weights[j]), LOAD_DIMS(j * DIM_VECTORS + i, values), acc[i]);
        }
    }
    // The score of a key without a value.
    if (has_sinks)
        sum += exp(sinks[head] - largest);
    for (int i = 0; i < DIM_VECTORS; i++)
        DIMS_TO(acc[i] / sum, i, out);
}
