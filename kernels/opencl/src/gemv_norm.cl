// The norm of the rows that a matmul of gemv_group.cl multiplies.

#define SUM_SQUARES(to, from)                                                                       \
    for (int r = 0; r < rows; r++)                                                                  \
        squares[r * ITEMS + (to)] += squares[r * ITEMS + (from)];

// The factor of each row in an RMS norm, computed by a group of at least ITEMS items. `squares` has ITEMS
// values for each row.
inline void norm_scales(global const float *x, int x_stride, int rows, int cols, float eps, int item,
                        local float *squares, local float *scales)
{
    for (int r = 0; r < rows && item < ITEMS; r++)
        squares[r * ITEMS + item] = squares_of_item(x + (size_t)r * x_stride, cols, item, ITEMS);
    REDUCE(SUM_SQUARES)
    if (item < rows)
        scales[item] = rms_scale(squares[item * ITEMS], cols, eps);
    barrier(CLK_LOCAL_MEM_FENCE);
}

#if IN_PERSISTENT
// Norms the rows that the matmul after this multiplies: each group writes and reads rows of its own, so that
// it need not wait for others.
inline void matmul_norm(PLACE global const float *x, int x_at, int x_stride, global const float *gain,
                        global float *normed, int rows, int cols, float eps)
{
    const int item = own_item();
    local float *squares = (local float *)memory;
    local float *scales = squares + rows * ITEMS;
    x += x_at;
    normed += NORMED_AT(rows, cols);
    norm_scales(x, x_stride, rows, cols, eps, item, squares, scales);
    for (int r = 0; r < rows; r++)
        for (int i = item; i < cols; i += get_local_size(0))
            normed[r * NORMED_LEN(cols) + i] = x[(size_t)r * x_stride + i] * scales[r] * gain[i];
    barrier(CLK_LOCAL_MEM_FENCE | CLK_GLOBAL_MEM_FENCE);
}
#endif
