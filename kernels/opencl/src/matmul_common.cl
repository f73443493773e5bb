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
} Sizes;

#define MATMUL_PARAMETERS                                                                           \
    global const uint *restrict weight, global const float *restrict x,                             \
        global const float *restrict bias, global const float *residual, global float *out,         \
        int cols, int rows, int first, int channels, int x_at, int x_stride, int has_bias,          \
        int has_residual, int residual_at, int residual_stride, int out_at, int out_stride,         \
        int segment, global const float *gain, int has_norm, float eps, int gate

#define MATMUL_ARGUMENTS                                                                            \
    const Sizes a = { cols, rows, first, channels, x_stride, has_bias, has_residual,                \
                      residual_stride, out_stride };                                                \
    x += x_at;                                                                                      \
    bias += first;                                                                                  \
    residual += residual_at;                                                                        \
    out += out_at;

#define ACTIVATED(gate, x) ((gate) == 1 ? SILU(x) : (gate) == 2 ? GELU(x) : SIGMOID(x))

// Writes the channels of a panel from `channel` on, as far as they are wanted.
inline void put(const Sizes *a, int row, int channel, float16 sum, global const float *bias,
                global const float *residual, global float *out)
{
    global const float *added = residual + (size_t)row * a->residual_stride + channel;
    global float *to = out + (size_t)row * a->out_stride + channel;
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
    if (a->has_bias)
        sum += bias[channel];
    if (a->has_residual)
        sum += residual[(size_t)row * a->residual_stride + channel];
    out[(size_t)row * a->out_stride + channel] = sum;
}
