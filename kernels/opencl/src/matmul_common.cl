// What the kernels of matmuls share. An output is a sum of segments of SEGMENT inputs: a number, or the
// parameter `segment`; a multiple of RUN_LEN.
//
// Kernels for few rows compute ops before and after the matmul, with the bits of separate ops:
// - `has_norm`: x is normed first, with `gain` and `eps`.
// - `gate`: an output is activation(gate) · up, with SiLU if `gate` is 1, GELU if it is 2, a sigmoid if it is 3. The matrix has
//   `channels` channels of gates, a multiple of PANEL, and as many of ups after them.

#define EACH_1(F) F(0)
#define EACH_2(F) F(0) F(1)
#define EACH_4(F) F(0) F(1) F(2) F(3)
#define EACH_6(F) F(0) F(1) F(2) F(3) F(4) F(5)
#define EACH_8(F) F(0) F(1) F(2) F(3) F(4) F(5) F(6) F(7)
#define EACH_12(F) EACH_8(F) F(8) F(9) F(10) F(11)

// Sizes and places of a matmul.
typedef struct {
    int cols;
    int rows;
    int first;
    int channels;
    int x_stride;
    int has_bias;
    int has_residual;
    int residual_stride;
    int out_stride;
#if EXPERTS
    global const int *slots;
    int is_sorted;
    int x_slots;
    int to_slots;
    float factor;
#endif
} Sizes;

#if EXPERTS
// In mixtures of experts, `weight` has the matrices of experts below each other, `panels` panels of each. Of `all_experts`,
// `experts` from `first_expert` on are computed, whose matrices come after those of `skipped` others. Rows are places: of
// slots, `used` of each row of `route`. A tile is some places of one expert, which is counted from `first_expert`.
//
// - Unless `is_sorted`, the places are those of the slots, and a tile is one of them. Those of other experts have none.
// - Else the slots of these experts are sorted by experts: `table` has the first place of each, the number of places, and the slot of each.
// - `x_slots`: how many slots share a row of x; 0 if x has a row for each place.
// - `to_slots`: `out` has a row for each slot, not for each place.
// - `first`: the first bias of `first_expert`; the next one's are `bias_stride` further.
typedef struct {
    int expert;
    int first;
    int end;
} Tile;

#define MORE_PARAMETERS                                                                             \
    , global const float *route, int route_at, int route_stride, global const int *table,           \
        global const float *factors, int has_factors, int experts, int used, int panels,            \
        int bias_stride, int is_sorted, int x_slots, int to_slots, int all_experts,          \
        int first_expert, int skipped

// The places of tile `index`, of which each has up to `most`; none if there is no such tile. Without any, a kernel goes
// through its barriers and reads no weights: PoCL computes wrong values if groups return before a barrier.
inline Tile tile_of(int index, int most, int rows, global const float *route, int route_stride,
                    global const int *table, int experts, int used, int is_sorted, int all, int from)
{
    Tile tile = { 0, 0, 0 };
    if (!is_sorted && index < rows) {
        const float number = route[(size_t)(index / used) * route_stride + index % used];
        const int expert = expert_of(number, all) - from;
        if (expert >= 0 && expert < experts) {
            tile.expert = expert;
            tile.first = index;
            tile.end = index + 1;
        }
    }
    for (int expert = 0; expert < experts && is_sorted; expert++) {
        const int first = table[expert] + index * most;
        if (first < table[expert + 1]) {
            tile.expert = expert;
            tile.first = first;
            tile.end = table[expert + 1];
            break;
        }
        index -= (table[expert + 1] - table[expert] + most - 1) / most;
    }
    return tile;
}

#define X_ROW(place)                                                                                \
    (a.x_slots == 0 || (place) < 0 ? max(place, 0)                                                  \
                                   : (a.is_sorted ? a.slots[place] : (place)) / a.x_slots)
#define OUT_ROW(a, place) ((a)->is_sorted && (a)->to_slots ? (a)->slots[place] : (place))
#define TIMES_FACTOR(a, sum) ((sum) * (a)->factor)
#else
#define MORE_PARAMETERS
#define X_ROW(row) (row)
#define OUT_ROW(a, row) (row)
#define TIMES_FACTOR(a, sum) (sum)
#endif

#define MATMUL_PARAMETERS                                                                           \
    global const uint *restrict weight, global const float *restrict x,                             \
        global const float *restrict bias, global const float *residual, global float *out,         \
        int cols, int rows, int first, int channels, int x_at, int x_stride, int has_bias,          \
        int has_residual, int residual_at, int residual_stride, int out_at, int out_stride,         \
        int segment, global const float *gain, int has_norm, float eps, int gate MORE_PARAMETERS

// `row`: the first row of tile `index`, whose tiles have up to `most` rows each; those of others begin at a.rows.
#if EXPERTS
#define MATMUL_ARGUMENTS(index, most)                                                               \
    const Tile own = tile_of(index, most, rows, route + route_at, route_stride, table, experts,     \
                             used, is_sorted, all_experts, first_expert);                           \
    const int own_cols = own.first < own.end ? cols : 0;                                            \
    const Sizes a = { own_cols, own.end, 0, channels, x_stride, has_bias, 0, 0, out_stride,         \
                      table + experts + 1, is_sorted, x_slots, to_slots,                            \
                      has_factors ? factors[first_expert + own.expert] : 1.0f };                    \
    const int row = own.first;                                                                      \
    weight += (size_t)(skipped + own.expert) * panels * (cols / BLOCK) * RECORD;                    \
    x += x_at;                                                                                      \
    bias += (size_t)own.expert * bias_stride + first;                                               \
    out += out_at;
#else
#define MATMUL_ARGUMENTS(index, most)                                                               \
    const Sizes a = { cols, rows, first, channels, x_stride, has_bias, has_residual,                \
                      residual_stride, out_stride };                                                \
    const int row = (index) * (most);                                                               \
    x += x_at;                                                                                      \
    bias += first;                                                                                  \
    residual += residual_at;                                                                        \
    out += out_at;
#endif

#define ACTIVATED(gate, x) ((gate) == 1 ? SILU(x) : (gate) == 2 ? GELU(x) : SIGMOID(x))

// Writes the channels of a panel from `channel` on, as far as they are wanted.
inline void put(const Sizes *a, int row, int channel, float16 sum, global const float *bias,
                global const float *residual, global float *out)
{
    global const float *added = residual + (size_t)row * a->residual_stride + channel;
    global float *to = out + (size_t)OUT_ROW(a, row) * a->out_stride + channel;
    sum = TIMES_FACTOR(a, sum);
    if (channel + PANEL <= a->channels) {
        if (a->has_bias)
            sum += vload16(0, bias + channel);
        if (a->has_residual)
            sum += vload16(0, added);
        vstore16(sum, 0, to);
        return;
    }
    float each[PANEL];
    vstore16(sum, 0, each);
    for (int i = 0; i < a->channels - channel; i++) {
        float value = each[i];
        if (a->has_bias)
            value += bias[channel + i];
        if (a->has_residual)
            value += added[i];
        to[i] = value;
    }
}

// Writes one output.
inline void put_one(const Sizes *a, int row, int channel, float sum, global const float *bias,
                    global const float *residual, global float *out)
{
    if (row >= a->rows || channel >= a->channels)
        return;
    sum = TIMES_FACTOR(a, sum);
    if (a->has_bias)
        sum += bias[channel];
    if (a->has_residual)
        sum += residual[(size_t)row * a->residual_stride + channel];
    out[(size_t)OUT_ROW(a, row) * a->out_stride + channel] = sum;
}
