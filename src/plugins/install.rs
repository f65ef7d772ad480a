//! Fetching plugins: Python wheels, through pip, unpacked into a folder.
//!
//! In comes a kind of device; out goes the plugin's path.
//! Never true here: a folder that is half full, or a change outside of the folder of plugins.
