// Rows of an embedding table, which is packed as a matrix of output channels. Compiled with one lane.

#define PUT(j, w) to[j] = (w) * scale;

kernel void embed(PLACE global const uint *table, global const int *ids, global float *out, int vocab,
                  int cols, int rows, int ids_at, int out_at, int out_stride, float scale)
{
    const int run = get_global_id(0);
    const int row = get_global_id(1);
    if (run * RUN_LEN >= cols || row >= rows)
        return;
    const int id = clamp(ids[ids_at + row], 0, vocab - 1);
    const int lane = id % PANEL;
    const int count = min(RUN_LEN, cols - run * RUN_LEN);
    global const uint *panel = table + (size_t)(id / PANEL) * (cols / BLOCK) * RECORD;
    global float *to = out + out_at + (size_t)row * out_stride + run * RUN_LEN;
    RUN(panel, lane, run, count, PUT)
}
