// Four products of signed bytes and their sum, an instruction of its own where the device has it.

#extension GL_EXT_spirv_intrinsics : require

spirv_instruction(extensions = ["SPV_KHR_integer_dot_product"], capabilities = [6019, 6018], id = 4450)
int packed_dot(int x, int y, spirv_literal int format);

spirv_instruction(extensions = ["SPV_KHR_integer_dot_product"], capabilities = [6019, 6018], id = 4452)
int packed_dot_unsigned(int x, uint y, spirv_literal int format);

int dot4(uint x, uint y) { return packed_dot(int(x), int(y), 0); }
// The bytes of y are unsigned.
int dot4_unsigned(uint x, uint y) { return packed_dot_unsigned(int(x), y, 0); }
