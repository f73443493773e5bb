// Matmuls whose output panels are shared by the items of a work-group, for GPUs. Compiled with one
// lane. Each sum has the order of matmul.cl, so the results have the same bits.

// Output channels and rows of a group of `matmul_group`: an item computes two channels of ITEM_ROWS rows.
#define TILE_CHANNELS (2 * PANEL)
#define ITEM_ROWS 8
#define TILE_STRIDE (GROUP_ROWS + 1)
#define GROUP_ITEMS (PANEL * GROUP_ROWS / ITEM_ROWS)

// Writes one output.
inline void put_one(const Sizes *a, int row, int channel, float sum, global const float *bias,
                    global const float *residual, global float *out)
{
    if (row >= a->rows || channel >= a->channels)
        return;
    if (a->has_bias)
        sum += bias[channel];
    if (a->has_residual)
        sum += residual[(size_t)row * a->residual_stride + channel];
    out[(size_t)row * a->out_stride + channel] = sum;
}

#define STORE(j, w) weights[(j) * TILE_CHANNELS + column] = w;

// Many rows: for each run of inputs, the group decodes the weights of two panels and copies the
// activations of GROUP_ROWS rows into local memory. The group has PANEL × (GROUP_ROWS / ITEM_ROWS) items.
kernel void matmul_group(MATMUL_PARAMETERS)
{
    MATMUL_ARGUMENTS
    local float weights[RUN_LEN * TILE_CHANNELS];
    local float values[RUN_LEN * TILE_STRIDE];
    const int lane = get_local_id(0);
    const int first_row = get_local_id(1) * ITEM_ROWS;
    const int item = get_local_id(1) * PANEL + lane;
    const int channel = get_group_id(0) * TILE_CHANNELS;
    const int row = get_group_id(1) * GROUP_ROWS;
    const size_t panel_len = (size_t)(a.cols / BLOCK) * RECORD;
    global const uint *panel = weight + (a.first + channel) / PANEL * panel_len;
    float acc[2 * ITEM_ROWS];
    float total[2 * ITEM_ROWS];
    for (int i = 0; i < 2 * ITEM_ROWS; i++) {
        acc[i] = 0.0f;
        total[i] = 0.0f;
    }
    const int runs = (a.cols + RUN_LEN - 1) / RUN_LEN;
    for (int run = 0; run < runs; run++) {
        const int count = min(RUN_LEN, a.cols - run * RUN_LEN);
        barrier(CLK_LOCAL_MEM_FENCE);
        for (int i = item; i < TILE_CHANNELS * (RUN_LEN / WORD_LEN); i += GROUP_ITEMS) {
            const int column = i % TILE_CHANNELS;
            const int word = i / TILE_CHANNELS;
            if (word < WHOLE(count) / WORD_LEN) {
                START(0, panel + column / PANEL * panel_len, column % PANEL, run)
                WORD(0, word, column % PANEL, STORE)
            }
        }
#if BLOCK == 1
        for (int column = item; column < TILE_CHANNELS; column += GROUP_ITEMS) {
            START(0, panel + column / PANEL * panel_len, column % PANEL, run)
            REST(0, count, column % PANEL, STORE)
        }
#endif
        for (int i = item; i < GROUP_ROWS * RUN_LEN; i += GROUP_ITEMS) {
            const int at = i % RUN_LEN;
            const int from = min(row + i / RUN_LEN, a.rows - 1);
            if (at < count)
                values[at * TILE_STRIDE + i / RUN_LEN] =
                    x[(size_t)from * a.x_stride + run * RUN_LEN + at];
        }
        barrier(CLK_LOCAL_MEM_FENCE);
        for (int at = 0; at < count; at++) {
            const float w0 = weights[at * TILE_CHANNELS + lane];
            const float w1 = weights[at * TILE_CHANNELS + PANEL + lane];
            for (int r = 0; r < ITEM_ROWS; r++) {
                const float value = values[at * TILE_STRIDE + first_row + r];
                acc[2 * r] = fma(w0, value, acc[2 * r]);
                acc[2 * r + 1] = fma(w1, value, acc[2 * r + 1]);
            }
        }
        if ((run + 1) % (SEGMENT / RUN_LEN) == 0 || run + 1 == runs) {
            for (int i = 0; i < 2 * ITEM_ROWS; i++) {
                total[i] += acc[i];
                acc[i] = 0.0f;
            }
        }
    }
    for (int r = 0; r < ITEM_ROWS; r++) {
        const int to = row + first_row + r;
        put_one(&a, to, channel + lane, total[2 * r], bias, residual, out);
        put_one(&a, to, channel + PANEL + lane, total[2 * r + 1], bias, residual, out);
    }
}

#undef STORE
