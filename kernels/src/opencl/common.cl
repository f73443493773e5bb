// What every program begins with. A vector has LANES lanes: output channels of a panel.

#pragma OPENCL FP_CONTRACT OFF

#define PANEL 16
#define CAT_(a, b) a##b
#define CAT(a, b) CAT_(a, b)
