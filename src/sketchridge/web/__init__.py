"""A campaign as a page in a browser: served on this computer, with everything it needs inside.

`server.serve` runs it, `server.make_app` is the page without its server. Flask and waitress come
with the extra ``web``.
"""

__all__ = ["server"]
