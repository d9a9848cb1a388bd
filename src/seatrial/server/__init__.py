"""A store to pages, and OTLP requests to a store: shown as it is, acknowledged once on disk, never computed here.

How it is put together, from the outside in:

- `run` listens; `app` puts routes together; `assets` serves the style sheet (the report's, then ``static/app.css``),
  the script and the icon.
- `security` meets every request first: headers, who it is from (`access`: tokens and roles), whether a form is the
  caller's own will, how often they come. `site.Site` turns a `site.Page` (an address, a handler, the role that it
  needs) into a route: a handler gets a `site.Asked` and runs in a thread.
- ``pages/``: one file for each group of pages, each with a tuple ``PAGES``; ``pages/__init__`` adds them up. To add a
  group: a file there, its templates, a line in `words.NAVIGATION`. A handler ends with ``asked.page(template, {...})``
  or, after a form, ``asked.back(path)``. Every POST form holds ``form_token``. Before a session is shown:
  ``asked.site.index.shown(id)`` (consent) and ``asked.site.saw(asked, id)`` (audit log).
- `index` holds sessions by column, one frame per state of the store; `traces` decoded sessions and windows of their
  steps; `stored` and `shown` turn stored results into records and sections of a report; `movers` tells what moves a
  model's place.
- `rendering` is what templates may call. Text of a trace goes through ``prose`` (as it is, hidden characters as codes)
  or ``|label`` (on one line); nothing of a trace is ever marked safe.
- `jobs` runs the command line as child processes. Whatever computes is a command; what it answers is kept in the store
  (`store.results`) and shown from there.
- `receiver`, `spool`, `conversations`, `otlp`, `body`: what comes in over OTLP.
"""

from seatrial.server.settings import ServerSettings

__all__ = ["ServerSettings"]
