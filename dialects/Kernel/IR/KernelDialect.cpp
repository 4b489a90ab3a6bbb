#include "dialects/Kernel/IR/KernelDialect.h"

#include "mlir/IR/Builders.h"
#include "mlir/IR/DialectImplementation.h"
#include "llvm/ADT/TypeSwitch.h"

#include "formats/artifact/kernel_abi.h"
#include "formats/codec/codec.h"
#include "formats/layout/layout.h"

using namespace mlir;

#include "dialects/Kernel/IR/KernelDialect.cpp.inc"
#include "dialects/Kernel/IR/KernelEnums.cpp.inc"

#define GET_ATTRDEF_CLASSES
#include "dialects/Kernel/IR/KernelAttrs.cpp.inc"

#define GET_TYPEDEF_CLASSES
#include "dialects/Kernel/IR/KernelTypes.cpp.inc"

namespace cortiq::kernel {

void KernelDialect::initialize() {
  addAttributes<
#define GET_ATTRDEF_LIST
#include "dialects/Kernel/IR/KernelAttrs.cpp.inc"
      >();
  addTypes<
#define GET_TYPEDEF_LIST
#include "dialects/Kernel/IR/KernelTypes.cpp.inc"
      >();
  addOperations<
#define GET_OP_LIST
#include "dialects/Kernel/IR/KernelOps.cpp.inc"
      >();
}

//===-- buffer ---------------------------------------------------------------------------------------------------===//

LogicalResult BufferType::verify(function_ref<InFlightDiagnostic()> emitError, Form, int64_t elements,
                                 int64_t records) {
  // The bound keeps every size computed from it inside 64 bits.
  if (elements < 1 || elements > (int64_t(1) << 40))
    return emitError() << "a buffer holds between 1 and 2^40 elements, not " << elements;
  if (records < 1 || records > 65536)
    return emitError() << "a buffer holds between 1 and 65536 records a token, not " << records;
  return success();
}

int64_t BufferType::bytesPerToken() const {
  const uint64_t k = static_cast<uint64_t>(getElements());
  const auto record = [&] {
    switch (getForm()) {
    case Form::q8a:
      return formats::q8_act_layout(k).bytes;
    case Form::q8a_bf16:
      return formats::bf16_act_layout(k).bytes;
    case Form::f32:
    case Form::i32: // integers take the room of floats
      return formats::f32_act_bytes(k);
    }
    llvm_unreachable("every form is above");
  };
  return getRecords() * static_cast<int64_t>(record());
}

//===-- spec -----------------------------------------------------------------------------------------------------===//

SpecAttr SpecAttr::withTile(int64_t tokens, int64_t rows) const {
  return get(getContext(), getCodec(), getLayout(), getK(), tokens, rows, getAct(), getIsa(), getBias(), getResidual());
}

SpecAttr SpecAttr::withAct(Form act) const {
  return get(getContext(), getCodec(), getLayout(), getK(), getTokens(), getRows(), act, getIsa(), getBias(),
             getResidual());
}

LogicalResult SpecAttr::verify(function_ref<InFlightDiagnostic()> emitError, StringRef codec, Layout, int64_t k,
                               int64_t tokens, int64_t rows, Form, StringRef isa, bool, bool) {
  const formats::Codec* info = formats::find_codec({codec.data(), codec.size()});
  if (!info || info->form == formats::DotForm::kNone)
    return emitError() << "'" << codec << "' is no weight codec";
  if (k < 1)
    return emitError() << "the row length k must be positive, not " << k;
  if ((tokens == 0) != (rows == 0) || tokens < 0 || rows < 0 || rows > formats::kRowGroup)
    return emitError() << "a tile has at least one token and 1 to " << formats::kRowGroup << " rows, not " << tokens
                       << "x" << rows;
  if (isa.empty())
    return emitError() << "the instruction set is missing";
  return success();
}

void SpecAttr::print(AsmPrinter& p) const {
  p << "<" << getCodec() << ", " << stringifyLayout(getLayout()) << ", k = " << getK();
  if (hasTile())
    p << ", tile = " << getTokens() << "x" << getRows();
  p << ", act = " << stringifyForm(getAct()) << ", isa = \"" << getIsa() << "\"";
  if (getBias())
    p << ", bias";
  if (getResidual())
    p << ", res";
  p << ">";
}

Attribute SpecAttr::parse(AsmParser& p, Type) {
  StringRef codec, layoutWord, actWord;
  int64_t k = 0;
  SmallVector<int64_t, 2> tile;
  std::string isa;
  bool bias = false, residual = false;
  SMLoc loc = p.getCurrentLocation();
  if (p.parseLess() || p.parseKeyword(&codec) || p.parseComma() || p.parseKeyword(&layoutWord) || p.parseComma() ||
      p.parseKeyword("k") || p.parseEqual() || p.parseInteger(k) || p.parseComma())
    return {};
  if (succeeded(p.parseOptionalKeyword("tile"))) {
    if (p.parseEqual() || p.parseDimensionList(tile, /*allowDynamic=*/false, /*withTrailingX=*/false) || p.parseComma())
      return {};
    if (tile.size() != 2)
      return p.emitError(loc, "a tile is TOKENSxROWS"), Attribute();
  }
  if (p.parseKeyword("act") || p.parseEqual() || p.parseKeyword(&actWord) || p.parseComma() || p.parseKeyword("isa") ||
      p.parseEqual() || p.parseString(&isa))
    return {};
  while (succeeded(p.parseOptionalComma())) {
    bool& flag = succeeded(p.parseOptionalKeyword("bias")) ? bias : residual;
    if (&flag == &residual && failed(p.parseKeyword("res")))
      return {};
    flag = true;
  }
  if (p.parseGreater())
    return {};
  std::optional<Layout> layout = symbolizeLayout(layoutWord);
  std::optional<Form> act = symbolizeForm(actWord);
  if (!layout)
    return p.emitError(loc, "'") << layoutWord << "' is no layout: use verbatim or r16", Attribute();
  if (!act)
    return p.emitError(loc, "'") << actWord << "' is no form of activations: use f32, q8a or q8a_bf16", Attribute();
  return p.getChecked<SpecAttr>(loc, p.getContext(), codec, *layout, k, tile.empty() ? 0 : tile[0],
                                tile.empty() ? 0 : tile[1], *act, isa, bias, residual);
}

} // namespace cortiq::kernel
