#include "formats/layout/stream_form.h"

namespace cortiq::formats {

const StreamForm* find_stream_form(CodecId codec) {
  static const StreamForm* const kForms[] = {&kVBitForm, &kVBitROForm, &kBLRForm};
  for (const StreamForm* form : kForms)
    if (form->codec == codec)
      return form;
  return nullptr;
}

} // namespace cortiq::formats
