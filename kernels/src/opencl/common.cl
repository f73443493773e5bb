// What every program begins with. A vector has LANES lanes: output channels of a panel.

#pragma OPENCL FP_CONTRACT OFF

#define PANEL 16
#define CAT_(a, b) a##b
#define CAT(a, b) CAT_(a, b)

// The value of binary16 numbers, without arithmetic on subnormal numbers, which a device may flush.
#define HALF_VALUE(NAME, F, U, AS_F, AS_U)                                                          \
    inline F NAME(U h)                                                                              \
    {                                                                                               \
        const U shifted = (h & 0x7fffu) << 13;                                                      \
        const U exponent = shifted & 0x0f800000u;                                                   \
        const U normal = shifted + 0x38000000u;                                                     \
        const U tiny = AS_U(AS_F(normal + 0x00800000u) - AS_F((U)(0x38800000u)));                   \
        const U special = normal + 0x38000000u;                                                     \
        U bits = select(normal, tiny, exponent == 0u);                                              \
        bits = select(bits, special, exponent == 0x0f800000u);                                      \
        return AS_F(bits | (h & 0x8000u) << 16);                                                    \
    }
