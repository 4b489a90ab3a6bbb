#include "dialects/CMF/IR/CMF.h"

#include "mlir/IR/DialectImplementation.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;

namespace cortiq::cmf {

const formats::Codec& WeightType::getCodec() const {
  return formats::codec_info(getCodecId());
}

// weight-type ::= `<` int (`x` int)? `,` codec-name `>`
Type WeightType::parse(AsmParser& parser) {
  SmallVector<int64_t> shape;
  std::string codecName;
  if (parser.parseLess() || parser.parseDimensionList(shape, /*allowDynamic=*/false, /*withTrailingX=*/false) ||
      parser.parseComma())
    return {};
  const SMLoc codecLoc = parser.getCurrentLocation();
  if (parser.parseKeywordOrString(&codecName) || parser.parseGreater())
    return {};
  const formats::Codec* codec = formats::find_codec(codecName);
  if (!codec) {
    InFlightDiagnostic diag = parser.emitError(codecLoc) << "unknown codec '" << codecName << "'; known are";
    for (const formats::Codec& known : formats::codec_table())
      diag << ' ' << std::string(known.name);
    return {};
  }
  return getChecked([&] { return parser.emitError(codecLoc); }, parser.getContext(), shape, codec->id);
}

void WeightType::print(AsmPrinter& printer) const {
  printer << '<';
  printer.printDimensionList(getShape());
  const std::string_view name = getCodec().name;
  printer << ", " << StringRef(name.data(), name.size()) << '>';
}

LogicalResult WeightType::verify(function_ref<InFlightDiagnostic()> emitError, ArrayRef<int64_t> shape,
                                 formats::CodecId codecId) {
  if (shape.empty() || shape.size() > 2)
    return emitError() << "a weight has one or two dimensions, not " << shape.size();
  for (int64_t dim : shape)
    if (dim <= 0)
      return emitError() << "a weight's dimensions are positive, but one is " << dim;
  const formats::Codec& codec = formats::codec_info(codecId);
  if (codec.form == formats::DotForm::kNone)
    return emitError() << "codec '" << std::string(codec.name) << "' holds raw data, not weights";
  if (codec.needs_matrix && shape.size() != 2)
    return emitError() << "codec '" << std::string(codec.name) << "' needs a matrix, not a vector of " << shape[0];
  const int64_t rows = shape.size() == 2 ? shape[0] : 1;
  if (StatusOr<uint64_t> bytes = codec.payload_bytes(codec, rows, shape.back()); !bytes.ok())
    return emitError() << bytes.status().message();
  return success();
}

} // namespace cortiq::cmf

#define GET_TYPEDEF_CLASSES
#include "dialects/CMF/IR/CMFTypes.cpp.inc"

void cortiq::cmf::CMFDialect::registerTypes() {
  addTypes<
#define GET_TYPEDEF_LIST
#include "dialects/CMF/IR/CMFTypes.cpp.inc"
      >();
}
