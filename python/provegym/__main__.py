"""``python -m provegym`` is the ``provegym`` command."""

import sys

from provegym.cli import main

sys.exit(main())
