// The limits of a device, for comparison with kernels.

// An item reads `len` vectors of 16 words.
kernel void read_all(global const uint16 *from, global uint *to, int items, int len)
{
    const int item = get_global_id(0);
    if (item >= items)
        return;
    from += (size_t)item * len;
    uint16 a = 0u;
    uint16 b = 0u;
    for (int i = 0; i + 2 <= len; i += 2) {
        a ^= from[i];
        b ^= from[i + 1];
    }
    a ^= b;
    const uint8 c = a.lo ^ a.hi;
    const uint4 d = c.lo ^ c.hi;
    to[item] = d.x ^ d.y ^ d.z ^ d.w;
}

// An item reads `len` vectors of 4 words, and its neighbours those beside them.
kernel void read_beside(global const uint4 *from, global uint *to, int items, int len)
{
    const int item = get_global_id(0);
    if (item >= items)
        return;
    uint4 a = 0u;
    uint4 b = 0u;
    for (int i = 0; i + 2 <= len; i += 2) {
        a ^= from[(size_t)i * items + item];
        b ^= from[(size_t)(i + 1) * items + item];
    }
    a ^= b;
    to[item] = a.x ^ a.y ^ a.z ^ a.w;
}

#define EACH_CHAIN(F) F(0) F(1) F(2) F(3) F(4) F(5) F(6) F(7) F(8) F(9)

// An item computes `len` multiply-adds in each of 10 chains of 16 lanes.
kernel void multiply_add(global float *to, int items, int len, float factor, float term)
{
    const int item = get_global_id(0);
    if (item >= items)
        return;
    const float16 x = factor;
    const float16 y = term;
#define CHAIN(r) float16 acc##r = (float)(item + r);
    EACH_CHAIN(CHAIN)
#undef CHAIN
    for (int i = 0; i < len; i++) {
#define CHAIN(r) acc##r = fma(acc##r, x, y);
        EACH_CHAIN(CHAIN)
#undef CHAIN
    }
    float16 sum = 0.0f;
#define CHAIN(r) sum += acc##r;
    EACH_CHAIN(CHAIN)
    vstore16(sum, item, to);
}
