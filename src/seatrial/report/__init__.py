"""Results to words and pictures: one ranking becomes a terminal report, a self-contained page, or Markdown.

`section.Section` is the seam: `chapters.ranking` turns a `Ranking` into sections, other flows may add their
own, and each of `terminal`, `page` and `markdown` draws sections without knowing what they are about.
"""
