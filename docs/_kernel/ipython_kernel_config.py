c = get_config()  # noqa: F821
c.InlineBackend.figure_formats = {"retina"}
c.InlineBackend.rc = {"figure.dpi": 90, "font.size": 9, "axes.spines.top": False, "axes.spines.right": False}
c.HistoryManager.enabled = False
c.IPKernelApp.log_level = "ERROR"
