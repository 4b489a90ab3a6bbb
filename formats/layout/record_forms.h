#pragma once

// The record forms, a file a codec family.

#include "formats/layout/record_form.h"

namespace cortiq::formats {

extern const RecordForm kBF16Form;
extern const RecordForm kBLRUForm;
extern const RecordForm kBLRVForm;
extern const RecordForm kF16Form;
extern const RecordForm kF32Form;
extern const RecordForm kFV5BForm;
extern const RecordForm kFV5Form;
extern const RecordForm kG80Form;
extern const RecordForm kI2SForm;
extern const RecordForm kI8SForm;
extern const RecordForm kIQ1MForm;
extern const RecordForm kIQ1SForm;
extern const RecordForm kIQ2SForm;
extern const RecordForm kIQ2XSForm;
extern const RecordForm kIQ2XXSForm;
extern const RecordForm kIQ3SForm;
extern const RecordForm kIQ3XXSForm;
extern const RecordForm kIQ4NLForm;
extern const RecordForm kIQ4XSForm;
extern const RecordForm kMXFP4Form;
extern const RecordForm kMXFP4GGMLForm;
extern const RecordForm kNVFP4Form;
extern const RecordForm kPTQ10Form;
extern const RecordForm kQ10Form;
extern const RecordForm kQ1Form;
extern const RecordForm kQ1GForm;
extern const RecordForm kQ1SForm;
extern const RecordForm kQ1TForm;
extern const RecordForm kQ20Form;
extern const RecordForm kQ20G128Form;
extern const RecordForm kQ2KForm;
extern const RecordForm kQ2TPAffineForm;
extern const RecordForm kQ2TPForm;
extern const RecordForm kQ3KForm;
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
extern const RecordForm kQ8KForm;
extern const RecordForm kQ8RowForm;
extern const RecordForm kSTQ10Form;
extern const RecordForm kTQ10Form;
extern const RecordForm kTQ20Form;

} // namespace cortiq::formats
