#pragma once

// The record forms, a file a codec family.

#include "formats/layout/record_form.h"

namespace cortiq::formats {

extern const RecordForm kBF16Form;
extern const RecordForm kF16Form;
extern const RecordForm kF32Form;
extern const RecordForm kIQ4NLForm;
extern const RecordForm kQ40Form;
extern const RecordForm kQ41Form;
extern const RecordForm kQ4BlockForm;
extern const RecordForm kQ4KForm;
extern const RecordForm kQ4TPForm;
extern const RecordForm kQ4TiledForm;
extern const RecordForm kQ50Form;
extern const RecordForm kQ51Form;
extern const RecordForm kQ5KForm;
extern const RecordForm kQ6KForm;
extern const RecordForm kQ80Form;
extern const RecordForm kQ82FForm;
extern const RecordForm kQ8RowForm;

} // namespace cortiq::formats
