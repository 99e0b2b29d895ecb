"""The plots of reports, as Vega-Lite specifications."""
