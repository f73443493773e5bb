// What every program begins with. A vector has LANES lanes: output channels of a panel.
//
// GROUP_OF(x, y): the kernel runs in work-groups of that size only. UNROLL: the loop that follows is
// unrolled, so that its arrays are registers. REDUCE(COMBINE): the items of a group of ITEMS, a power of
// two, combine what they hold in local memory; COMBINE(to, from) adds that of one item to another's.

#pragma OPENCL FP_CONTRACT OFF

#define PANEL 16
#define GROUP_OF(x, y) __attribute__((reqd_work_group_size(x, y, 1)))
#define UNROLL _Pragma("unroll")
#define REDUCE(COMBINE)                                                                             \
    barrier(CLK_LOCAL_MEM_FENCE);                                                                   \
    for (int other = ITEMS / 2; other > 0; other /= 2) {                                            \
        if (item < other)                                                                           \
            COMBINE(item, item + other)                                                             \
        barrier(CLK_LOCAL_MEM_FENCE);                                                               \
    }
#define CAT_(a, b) a##b
#define CAT(a, b) CAT_(a, b)
