"""Results as HTML, SVG, CSV and Markdown, made from core values alone."""
