"""What assistive technology sees of the desktop, read over AT-SPI's bus."""
