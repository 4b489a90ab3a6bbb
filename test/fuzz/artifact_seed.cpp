// Writes the seeds that only our own writers can make: artifact_seed ARTIFACT TOKENIZER_JSON SECTION

#include <cstdio>
#include <string_view>

#include "formats/mapped_file.h"
#include "runtime/text/text_section.h"
#include "test/unit/base/test_files.h"
#include "test/unit/runtime/tiny_model.h"

int main(int argc, char** argv) {
  using namespace cortiq;
  if (argc != 4)
    return 2;
  test::TinyModel model;
  if (const Status status = model.write(argv[1]); !status.ok()) {
    std::fprintf(stderr, "artifact_seed: %s\n", status.message().c_str());
    return exit_code(status);
  }
  const StatusOr<formats::MappedFile> json = formats::MappedFile::open(argv[2]);
  if (!json.ok())
    return exit_code(json.status());
  const auto section = runtime::text::pack_text_section(json->bytes(), {});
  if (section.ok())
    test::write_bytes(argv[3], *section);
  return 0;
}
