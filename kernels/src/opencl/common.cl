// What every program begins with. A vector has LANES lanes: output channels of a panel.
//
// GROUP_OF(x, y): the kernel runs in work-groups of that size only. UNROLL: the loop that follows is
// unrolled, so that its arrays are registers.

#pragma OPENCL FP_CONTRACT OFF

#define PANEL 16
#define GROUP_OF(x, y) __attribute__((reqd_work_group_size(x, y, 1)))
#define UNROLL _Pragma("unroll")
#define CAT_(a, b) a##b
#define CAT(a, b) CAT_(a, b)
