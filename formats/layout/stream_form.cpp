#include "formats/layout/stream_form.h"

namespace cortiq::formats {

const StreamForm* find_stream_form(CodecId codec) {
  static const StreamForm* const kForms[] = {&kVBitForm, &kVBitROForm, &kBLRForm};
  for (const StreamForm* form : kForms)
    if (form->codec == codec)
      return form;
  return nullptr;
}

const StreamPlanes* find_stream_planes(CodecId codec, LayoutId layout) {
  const StreamForm* form = layout == LayoutId::kPlanes ? find_stream_form(codec) : nullptr;
  return form ? form->planes : nullptr;
}

} // namespace cortiq::formats
