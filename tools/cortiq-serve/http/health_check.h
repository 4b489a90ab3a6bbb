#pragma once

// Whether a server answers: for containers, in which there is no other program to ask it.

#include "formats/status.h"

namespace cortiq::serve {

/// Asks the server of this machine at `port` whether it serves. Fails where none answers, or it says that it does not.
Status check_health(int port);

} // namespace cortiq::serve
