#include "tools/cortiq-run/doctor/doctor.h"

#include <unistd.h>

#include "formats/terminal.h"
#include "runtime/cli/output.h"
#include "tools/cortiq-run/doctor/findings.h"
#include "tools/cortiq-run/doctor/report.h"

namespace cortiq::tools {

Status run_doctor(const runtime::cli::RunOptions& options) {
  const Findings findings = examine(options);
  CORTIQ_RETURN_IF_ERROR(runtime::cli::print(
      options.json ? report_json(findings) + "\n" : report_text(findings, formats::shows_colours(STDOUT_FILENO))));
  return findings.file ? findings.file->status : Status();
}

} // namespace cortiq::tools
